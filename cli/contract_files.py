"""Contracts in files: JSON, YAML, GraphQL SDL or protobuf, with the files beside them that they
refer to. Nothing is fetched, and nothing outside their folder is read."""

import json
import posixpath
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.terminal import USAGE, fail
from cli.text_files import read_text
from contracts.json_text import path_text
from contracts.refs import FILES
from contracts.sameness import references

Json = dict[str, Any]

SIZE_MAX = 32 * 1024 * 1024
"""Bytes of one file."""
VALUES_MAX = 3_000_000
"""Values of one document, with each alias of YAML counted as what it stands for."""
FILES_MAX = 200
DEPTH_MAX = 200
_TEXTS = {".graphql": "graphql", ".gql": "graphql", ".proto": "proto"}


def load_contract(path: Path) -> Json:
    """The content that a file holds. It ends the command if it can't be read."""
    content = _document(path)
    if path.suffix in _TEXTS:
        return content
    files: Json = {}
    waiting = list(_beside(content, ""))
    while waiting:
        name = waiting.pop()
        target = path.parent / name
        if name in files or not target.is_file():
            continue
        if not target.resolve().is_relative_to(path.parent.resolve()):
            fail(USAGE, f"{path} refers to {name}, which is outside its folder: copy it there")
        if len(files) >= FILES_MAX:
            fail(USAGE, f"{path} refers to more than {FILES_MAX} files")
        files[name] = _document(target)
        waiting += _beside(files[name], name)
    return content | {FILES: {**files, **content.get(FILES, {})}} if files else content


def _document(path: Path) -> Json:
    try:
        size = path.stat().st_size
    except OSError as error:
        fail(USAGE, f"can't read {path}: {error.strerror}")
    if size > SIZE_MAX:
        fail(USAGE, f"{path} has {size:,} bytes; at most {SIZE_MAX:,} are read")
    text = read_text(path)
    if path.suffix in _TEXTS:
        return {_TEXTS[path.suffix]: text}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if path.suffix == ".json":
            fail(USAGE, f"{path} is not JSON: {_problem(error)}")
        value = _yaml(path, text)
    try:
        value = _Plain().plain(value)
    except ValueError as error:
        fail(USAGE, f"{path}: {error}")
    if not isinstance(value, dict):
        fail(USAGE, f"{path} holds no object: a contract's content is one")
    return value


def _yaml(path: Path, text: str) -> Any:
    import yaml

    try:
        value: Any = yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        fail(USAGE, f"{path} is neither JSON nor YAML: {_problem(error)}")
    return value


def _loader() -> Any:
    """YAML's safe loader without dates, which JSON has not."""
    import yaml

    class ContractLoader(yaml.SafeLoader):
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return ContractLoader


class _Plain:
    """Makes what YAML or Python's JSON holds into JSON's values: names are texts, numbers are
    finite, and aliases are bounded. An alias of an alias would else stand for more values than any
    memory holds."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def plain(self, value: Any) -> Any:
        """The value. Raises ValueError for what JSON has not, or too much of it."""
        made, size = self._made(value, ())
        if size > VALUES_MAX:
            raise ValueError(f"it and its aliases stand for more than {VALUES_MAX:,} values")
        return made

    def _made(self, value: Any, path: tuple[str | int, ...]) -> tuple[Any, int]:
        if not isinstance(value, dict | list):
            if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
                what = "no number" if value != value else "a number beyond 1.8e308"
                raise ValueError(f"at {path_text(path)} is {what}, which no contract can hold")
            if value is None or isinstance(value, str | int | float | bool):
                return value, 1
            kind = type(value).__name__
            raise ValueError(f"at {path_text(path)} is a {kind}, which JSON has not")
        if len(path) > DEPTH_MAX or id(value) in self._open:
            raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep, or within itself")
        known = self._known.get(id(value))
        if known is None:
            self._open.add(id(value))
            if isinstance(value, dict):
                members = {
                    name: self._made(part, (*path, name))
                    for name, part in ((_name(name), part) for name, part in value.items())
                }
                made: Any = {name: part for name, (part, _) in members.items()}
                sizes = [size for _, size in members.values()]
            else:
                parts = [self._made(part, (*path, place)) for place, part in enumerate(value)]
                made, sizes = [part for part, _ in parts], [size for _, size in parts]
            self._open.discard(id(value))
            known = self._known[id(value)] = (made, 1 + sum(sizes))
        return known


def _name(name: Any) -> str:
    """A member's name: YAML has numbers and truth values there, as in `200:`."""
    if name is None or isinstance(name, str | int | float | bool):
        return name if isinstance(name, str) else json.dumps(name)
    raise ValueError(f"a member has a {type(name).__name__} for its name: names are texts")


def _problem(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _beside(document: Any, file: str) -> Iterator[str]:
    """The names of files that a document refers to, from the first document's folder."""
    for reference in references(document):
        name = reference.partition("#")[0]
        if name and "://" not in name:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
