"""References: JSON pointers, `$id`, `$anchor`, and files given along. Nothing is ever fetched."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from contracts.model import Interface, Located, Path
from schemas.plain import one_line

FILES = "x-files"
"""The member of a content that holds the files given along: name → document."""
CHAIN_MAX = 16
DEPTH_MAX = 200
"""Levels below which no `$id` or `$anchor` is looked for."""
WORDS = frozenset({"$ref", "summary", "description", "title", "$comment"})
_DATA = frozenset({"enum", "const", "default", "example", "examples", FILES})


class Unresolved(NamedTuple):
    """Why a reference leads nowhere."""

    why: str


def files_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The files given along with a content, by their normal names."""
    files = content.get(FILES)
    if not isinstance(files, dict):
        return {}
    return {posixpath.normpath(name): document for name, document in files.items() if name}


def resolve(interface: Interface, located: Located) -> Located | None:
    """The schema that a `$ref` leads to, through further ones; the schema itself if it has none.

    It stops before a `$ref` beside which other keywords count. None if it leads nowhere: to what is
    not there, to another host, or round in a circle; `Resolver` says which.
    """
    resolver = Resolver(interface.document, interface.files, interface.draft == "2020-12")
    target = resolver.resolve(located)
    return target if isinstance(target, Located) else None


class Resolver:
    """The references of one content and the files given along with it.

    `siblings`: whether keywords beside a `$ref` count, as they do since draft 2019-09.
    """

    def __init__(
        self, document: Mapping[str, Any], files: Mapping[str, Any], siblings: bool = True
    ) -> None:
        self.document, self.files, self.siblings = document, files, siblings
        self._named: dict[str, Located] | None = None

    def resolve(self, located: Located) -> Located | Unresolved:
        """Where a `$ref` leads, through further ones; the schema itself if it has none.

        It stops before a `$ref` beside which other keywords count.
        """
        place = located
        passed: set[tuple[str, Path]] = set()
        while isinstance(ref := _ref(place.schema), str):
            if place is not located and self.siblings and not place.schema.keys() <= WORDS:
                return place
            if (place.file, place.path) in passed or len(passed) > CHAIN_MAX:
                return Unresolved(
                    f"The reference {_shown(ref)} leads round in a circle, or through more than "
                    f"{CHAIN_MAX} others."
                )
            passed.add((place.file, place.path))
            target = self._target(place, ref)
            if isinstance(target, Unresolved):
                return target
            place = target
        return place

    def _target(self, place: Located, ref: str) -> Located | Unresolved:
        base = self._base(place)
        name, fragment = urldefrag(ref) if "#" in ref else (ref, "")
        root = base if not name else self._document(place, base, name)
        if root is None:
            return Unresolved(_no_document(name))
        if fragment and not fragment.startswith("/"):
            return self._anchored(root, fragment)
        target = below(root, fragment)
        if target is None:
            return Unresolved(f"The reference {_shown(ref)} leads to nothing.")
        return target

    def _base(self, place: Located) -> Located:
        """The schema resource that a place stands in: the nearest above it that has an `$id`, or
        its document."""
        root = value = self.files.get(place.file) if place.file else self.document
        base = Located(root, (), place.file)
        for depth, step in enumerate(place.path):
            value = _child(value, step)
            if value is None:
                break
            if isinstance(value, dict) and _identifier(value):
                base = Located(value, place.path[: depth + 1], place.file)
        return base

    def _document(self, place: Located, base: Located, name: str) -> Located | None:
        """The document or schema resource of a name, which may be relative."""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(place.file), unquote(name)))
        if file in self.files:
            return Located(self.files[file], (), file)
        identifier = _identifier(base.schema) or ""
        return self._names().get(_joined(identifier, name).removesuffix("#"))

    def _anchored(self, root: Located, anchor: str) -> Located | Unresolved:
        target = self._names().get(f"{root.file}\n{root.path}#{unquote(anchor)}")
        return target or Unresolved(f"No schema has the anchor {_shown(anchor)}.")

    def _names(self) -> dict[str, Located]:
        """Each schema with an `$id` by its whole identifier, each anchor by resource and name."""
        if self._named is None:
            self._named = {}
            for file, document in (("", self.document), *self.files.items()):
                for uri, resource, place in _resources(Located(document, (), file)):
                    if uri is not None:
                        self._named.setdefault(uri, place)
                    for anchor in _anchors(place.schema):
                        self._named.setdefault(f"{file}\n{resource}#{anchor}", place)
        return self._named


def below(root: Located, pointer: str) -> Located | None:
    """What a JSON pointer of a reference leads to, below a place. None for nothing."""
    value, path = root.schema, root.path
    for part in pointer.split("/")[1:]:
        step: str | int = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and isinstance(step, str) and step.isdecimal():
            step = int(step[:9])
        if not _has(value, step):
            return None
        value, path = value[step], (*path, step)
    return Located(value, path, root.file)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _child(value: Any, step: str | int) -> Any:
    return value[step] if _has(value, step) else None


def _ref(schema: Any) -> str | None:
    ref = schema.get("$ref") if isinstance(schema, Mapping) else None
    return ref if isinstance(ref, str) else None


def _identifier(schema: Any) -> str | None:
    """The `$id` of a schema resource. One that begins with # is an anchor (draft-07)."""
    given = schema.get("$id") if isinstance(schema, Mapping) else None
    return given if isinstance(given, str) and not given.startswith("#") else None


def _anchors(schema: Mapping[str, Any]) -> Iterator[str]:
    for name in ("$anchor", "$dynamicAnchor"):
        if isinstance(anchor := schema.get(name), str):
            yield anchor
    if isinstance(given := schema.get("$id"), str) and given.startswith("#"):
        yield given[1:]


def _resources(root: Located) -> Iterator[tuple[str | None, Path, Located]]:
    """Each object of a document, with its identifier if it has one and the path of its resource."""
    # A stack of iterators, not of places: a list of many elements deep inside has long paths.
    first = root.schema if isinstance(root.schema, dict | list) else {}
    stack = [iter([(first, root.path, "", root.path)])]
    while stack:
        value, path, base, resource = next(stack[-1], (None, (), "", ()))
        if value is None:
            stack.pop()
        elif len(path) <= DEPTH_MAX:
            uri = None
            if identifier := _identifier(value):
                uri = base = _joined(base, identifier).removesuffix("#")
                resource = path
            if isinstance(value, dict):
                yield uri, resource, Located(value, path, root.file)
            stack.append(_parts(value, path, base, resource))


def _parts(
    value: Any, path: Path, base: str, resource: Path
) -> Iterator[tuple[Any, Path, str, Path]]:
    """The objects and lists in a value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, part in steps:
        if isinstance(part, dict | list) and part and step not in _DATA:
            yield part, (*path, step), base, resource


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def _no_document(name: str) -> str:
    try:
        remote = bool(urlsplit(name).scheme)
    except ValueError:
        remote = True
    if remote:
        return (
            f"{_shown(name)} is not part of the content, and nothing is fetched: give it along, "
            f'as a schema with this "$id" or as a file in "{FILES}".'
        )
    return f'The file {_shown(name)} was not given along in "{FILES}".'


def _shown(reference: str) -> str:
    return f'"{one_line(reference[:200], 80)}"'
