"""Protocol Buffers: contents that carry `.proto` files.

`{"proto": "message User { optional string id = 1; }"}`, the same in `protobuf`, or several files by
name in `files`: `{"files": {"user.proto": "..."}}`. Files given along are read like these.

The text is read by proto-schema-parser (`protobuf_reader`), with a bound on its length.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.model import DocumentProblem, Interface, Located, Path
from contracts.openapi_parts import unread_members
from contracts.protobuf_model import ProtoSchema
from contracts.reading import BESIDE
from contracts.refs import FILES, files_of

MEMBERS = ("proto", "protobuf")
SUFFIX = ".proto"
SOURCE_MAX = 100_000
"""Characters of all files together that are no comments and no blanks, at most. More are not read:
these take a second, some seconds if they are made to."""

_KEYWORD = re.compile(
    r"^[ \t]*(?:(?:syntax|edition)[ \t]*=|package[ \t]+[\w.]+;"
    r"|(?:message|enum|service)[ \t]+\w+\s*\{)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Proto:
    """What was read. `schema` is None if the files are invalid (`problems` say why) or are not read
    (`warnings` say why)."""

    texts: Mapping[str, str]
    schema: ProtoSchema | None
    problems: tuple[DocumentProblem, ...] = ()
    warnings: tuple[DocumentProblem, ...] = ()


def proto_paths(content: Mapping[str, Any]) -> dict[str, Path]:
    """Where the `.proto` files of a content stand, by name."""
    paths: dict[str, Path] = {}
    for member in MEMBERS:
        if isinstance(content.get(member), str):
            paths[f"{member}{SUFFIX}"] = (member,)
    for member in ("files", FILES):
        files = content.get(member)
        for name, text in files.items() if isinstance(files, dict) else ():
            if name.endswith(SUFFIX) and isinstance(text, str):
                paths[name] = (member, name)
    return paths


def is_protobuf(content: Mapping[str, Any]) -> bool:
    """Whether a content that doesn't say so is Protocol Buffers."""
    paths = proto_paths(content)
    return any(
        path[0] == "files" or (path[0] != FILES and _KEYWORD.search(_text(content, path)))
        for path in paths.values()
    )


def read_protobuf(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """A content of the dialect Protocol Buffers. It has no operations in the inner form:
    `protobuf_changes` compares the messages and services themselves. What else it says is unread,
    and so are files that can't be read."""
    proto = read_proto(content)
    known = {path[0] for path in proto_paths(content).values()} if proto.schema else set()
    unread = list(unread_members(Located(content, ()), BESIDE.union(map(str, known))))
    if "files" in known:
        files = Located(content["files"], ("files",))
        unread += unread_members(files, frozenset(proto.texts))
    return Interface(
        "protobuf", "2020-12", (), content, files_of(content), proto.problems, proto.warnings,
        unread=tuple(unread),
    )  # fmt: skip


def read_proto(content: Mapping[str, Any]) -> Proto:
    """The `.proto` files that a content carries. Never raises."""
    from contracts.protobuf_reader import read_files
    from contracts.protobuf_text import weight

    paths = proto_paths(content)
    texts = {name: _text(content, path) for name, path in paths.items()}
    if not texts:
        why = (
            'The text of a .proto file was expected in "proto": '
            '{"proto": "syntax = \\"proto3\\"; message User { string id = 1; }"}, '
            'or several in "files", by name.'
        )
        return Proto({}, None, (DocumentProblem((), why),))
    size = sum(map(weight, texts.values()))
    if size > SOURCE_MAX:
        why = (
            f"The files are not read, and their changes are not judged: they have {size} "
            f"characters beside comments and blanks, more than {SOURCE_MAX}."
        )
        return Proto(texts, None, (), (DocumentProblem((), why),))
    schema, problems, warnings = read_files(texts, paths)
    return Proto(texts, None if problems else schema, problems, warnings)


def _text(content: Mapping[str, Any], path: Path) -> str:
    text: Any = content
    for step in path:
        text = text[step]
    return str(text)
