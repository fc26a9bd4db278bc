"""The files that a contract has in a repository: names that any file system takes, whatever it is
called."""

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from cli.pull_lock import Language
from contracts.graphql_sdl import sdl_texts
from contracts.protobuf import proto_paths

SLUG_MAX = 60
_OTHER = re.compile(r"[^a-z0-9]+")
_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
"""Names that Windows keeps for itself."""
_PROTO = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}/){0,5}[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")


def slugs(names: Mapping[str, str]) -> dict[str, str]:
    """A slug of its own for each contract, by its id; `names` has their names.

    Of contracts with the same slug the first by id has it bare: ids grow with time. The others add
    a hash of their id, so that a further contract renames no file.

    >>> slugs({"01": "Get profile", "02": "GET  profile!", "03": "../../etc"})
    {'01': 'get-profile', '02': 'get-profile-a953f09a', '03': 'etc'}
    """
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for id in sorted(names):
        bare = _slug(names[id])
        tail = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
        lengths = (0, *range(8, len(tail) + 1))
        options = (f"{bare}-{tail[:n]}" if n else bare for n in lengths)
        chosen[id] = next(option for option in options if option not in taken)
        taken.add(chosen[id])
    return chosen


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = _OTHER.sub("-", plain).strip("-")[:SLUG_MAX].strip("-") or "contract"
    return f"{slug}-contract" if _DEVICE.fullmatch(slug) else slug


def content_path(slug: str) -> str:
    return f".cacp/contracts/{slug}.json"


def types_path(slug: str, language: Language) -> str:
    """Where the types of a contract are. Python's are modules of the package `cacp_types`."""
    if language == "typescript":
        return f".cacp/typescript/{slug}.d.ts"
    module = slug.replace("-", "_")
    if module[0].isdigit():
        module = f"_{module}"
    return f".cacp/python/cacp_types/{module}{'_' if keyword.iskeyword(module) else ''}.py"


def source_texts(dialect: str, content: Mapping[str, Any], slug: str) -> dict[str, str]:
    """The texts of a content in a language of its own, by path: the SDL of GraphQL, `.proto` files.

    A file whose name is none on every system stands in the content alone.
    """
    if dialect == "graphql":
        texts = {f".cacp/contracts/{slug}.graphql": text.text for text in sdl_texts(content)[:1]}
    elif dialect == "protobuf":
        texts = _protos(content, slug)
    else:
        texts = {}
    return {path: text for path, text in texts.items() if _is_writable(text)}


def _protos(content: Mapping[str, Any], slug: str) -> dict[str, str]:
    paths = proto_paths(content)
    texts: dict[str, str] = {}
    taken: set[str] = set()
    for name, place in paths.items():
        text: Any = content
        for step in place:
            text = text[step]
        if len(paths) == 1 and "/" not in name:
            return {f".cacp/contracts/{slug}.proto": text}
        # On some systems names in other case are the same, and no folder has a file's name.
        steps = name.casefold().split("/")
        folders = {"/".join(steps[:n]) for n in range(1, len(steps))}
        whole = "/".join(steps)
        if _PROTO.fullmatch(name) and not taken & {whole, f"{whole}/", *folders}:
            taken |= {whole, *(f"{folder}/" for folder in folders)}
            texts[f".cacp/contracts/{slug}/{name}"] = text
    return texts


def _is_writable(text: str) -> bool:
    """Whether a text is UTF-8: halves of characters are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
