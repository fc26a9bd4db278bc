"""Reads the schemas of an interface into their normal form (`schema_atoms`).

It follows references, works out the keywords that join schemas, and takes each draft by its rules:
`nullable` and boolean bounds of OpenAPI 3.0, lists of `items` of draft-07, what stands beside a
`$ref` since 2019-09. A member that is only read doesn't belong to requests, one that is only
written not to responses.
"""

from dataclasses import replace
from typing import Any

import regex

from contracts.json_text import text_of
from contracts.model import Interface, Located
from contracts.refs import WORDS, Resolver
from contracts.sameness import references
from contracts.schema_atoms import TYPES, Atom, SchemaNode, View, is_integer, meet, value_type
from contracts.schema_keywords import KeywordReader
from contracts.schema_overlap import apart
from contracts.work import Work
from schemas.dialect import Direction

ATOMS_MAX = 100
"""Alternatives of one schema; one that has more is not worked out."""
DEPTH_MAX = 60
"""Schemas that join others, one within the other, without a value between."""
MATCH_SECONDS = 0.05
"""The time that a pattern may take over a name: beyond it, nobody knows whether it matches."""

Atoms = tuple[Atom, ...]
Key = tuple[int, ...]


def key_of(view: View) -> Key:
    return tuple(id(node.raw) for node in view)


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern is found in a text; None if that can't be told."""
    try:
        return regex.search(pattern, text, timeout=MATCH_SECONDS) is not None
    except (regex.error, TimeoutError, RecursionError):
        return None


class SchemaReader:
    """The schemas of one interface, for what goes in one direction."""

    def __init__(self, interface: Interface, direction: Direction, work: Work) -> None:
        self.interface = interface
        self._work = work
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._kept: dict[Key, tuple[View, Atoms]] = {}
        self._settled: dict[int, tuple[SchemaNode, SchemaNode]] = {}
        self._resolver = Resolver(interface.document, interface.files, interface.draft == "2020-12")
        self._open: list[int] = []

    @staticmethod
    def view(schema: Located) -> View:
        return (
            () if schema.schema is True else (SchemaNode(schema.schema, schema.path, schema.file),)
        )

    def settled(self, view: View) -> View:
        """The view with references replaced by what they lead to, so that it is the same wherever
        it is referred to."""
        for node in view:
            if isinstance(node.raw, dict) and "$ref" in node.raw:
                return tuple(self._target(each) or each for each in view)
        return view

    def _target(self, node: SchemaNode) -> SchemaNode | None:
        """Where a schema that is a mere reference leads; None if it is none, or leads nowhere."""
        raw = node.raw
        if not isinstance(raw, dict) or not isinstance(raw.get("$ref"), str):
            return None
        if self.interface.draft == "2020-12" and not raw.keys() <= WORDS:
            return None
        return self._resolve(node)

    def _resolve(self, node: SchemaNode) -> SchemaNode | None:
        known = self._settled.get(id(node.raw))
        if known is None:
            self._work.spend()
            place = self._resolver.resolve(Located(node.raw, node.path, node.file))
            if not isinstance(place, Located):
                return None
            known = (node, SchemaNode(place.schema, place.path, place.file))
            # The node is kept too: an id is an object's only as long as the object lives.
            self._settled[id(node.raw)] = known
        return known[1]

    def atoms(self, view: View) -> Atoms:
        """The alternatives of a view. Raises TooMuchWork."""
        view = self.settled(view)
        key = key_of(view)
        known = self._kept.get(key)
        if known is None:
            atoms = self._of_node(view[0]) if view else _ANY
            for node in view[1:]:
                atoms = self._product(atoms, self._of_node(node))
            known = self._kept[key] = (view, atoms)
        return known[1]

    def member(self, atom: Atom, name: str) -> View:
        """What an atom says of a member by its name."""
        view = atom.members.get(name)
        if not atom.patterns:
            return (atom.rest or ()) if view is None else view
        matching = [
            each for pattern, each in atom.patterns.items() if matches(pattern, name) is not False
        ]
        if matching:
            return tuple(node for each in (view or (), *matching) for node in each)
        return (atom.rest or ()) if view is None else view

    def _of_node(self, node: SchemaNode) -> Atoms:
        raw = node.raw
        if raw is True:
            return _ANY
        if raw is False:
            return ()
        self._work.spend()
        if not isinstance(raw, dict):
            return _undecided(node, "schema")
        if id(raw) in self._open or len(self._open) > DEPTH_MAX:
            return _undecided(node, "cycle")
        self._open.append(id(raw))
        try:
            return self._of_schema(node)
        finally:
            self._open.pop()

    def _of_schema(self, node: SchemaNode) -> Atoms:
        raw = node.raw
        atoms = _ANY
        if isinstance(raw.get("$ref"), str):
            target = self._resolve(node)
            atoms = _undecided(node, "$ref") if target is None else self._of_node(target)
            if self.interface.draft != "2020-12" or raw.keys() <= WORDS:
                return atoms
        atoms = (
            self._product(atoms, self._of_keywords(node))
            if atoms != _ANY
            else (self._of_keywords(node))
        )
        for place, part in enumerate(_listed(raw, "allOf")):
            atoms = self._product(atoms, self._of_node(_part(node, part, "allOf", place)))
        for key in ("anyOf", "oneOf"):
            if isinstance(raw.get(key), list):
                atoms = self._product(atoms, self._of_choice(node, key))
        if "unevaluatedProperties" in raw and "additionalProperties" not in raw:
            rest = KeywordReader.view_of(
                node, raw["unevaluatedProperties"], "unevaluatedProperties"
            )
            atoms = tuple(replace(each, rest=rest) if each.rest is None else each for each in atoms)
        return atoms

    def _of_keywords(self, node: SchemaNode) -> Atoms:
        raw, reader = (
            node.raw,
            KeywordReader(
                node, self.interface.draft, self._hidden, lambda part: self._whole_text(node, part)
            ),
        )
        kinds = reader.kinds()
        listed = _values(raw)
        atoms = []
        for kind in TYPES:
            if kind not in kinds:
                continue
            whole = kind == "number" and not kinds[kind]
            if listed is None:
                atoms.append(reader.atom(kind, None, whole))
                continue
            of_kind = [value for value in listed if value_type(value) == kind]
            if whole:
                of_kind = [value for value in of_kind if is_integer(value)]
            if of_kind:
                atoms.append(reader.atom(kind, tuple(of_kind), whole))
        return tuple(atoms)

    def _of_choice(self, node: SchemaNode, key: str) -> Atoms:
        branches = [
            self._of_node(_part(node, part, key, place))
            for place, part in enumerate(_listed(node.raw, key))
        ]
        atoms = tuple(atom for branch in branches for atom in branch)
        if len(atoms) > ATOMS_MAX:
            return _undecided(node, key)
        if key == "oneOf" and "discriminator" not in node.raw:
            # A value that fits two branches is refused: what that means isn't worked out.
            kept = frozenset({(key, self._whole_text(node, node.raw[key]))})
            atoms = tuple(
                replace(atom, opaque=atom.opaque | kept, excludes=atom.excludes + others)
                if (others := self._overlapping(atom, branches, number))
                else atom
                for number, branch in enumerate(branches)
                for atom in branch
            )
        return atoms

    def _overlapping(self, atom: Atom, branches: list[Atoms], own: int) -> Atoms:
        """The alternatives of other branches that a value of one may fit too."""
        self._work.spend(sum(map(len, branches)))
        return tuple(
            each
            for number, branch in enumerate(branches)
            if number != own
            for each in branch
            if not apart(atom, each, self.member)
        )

    def _whole_text(self, node: SchemaNode, schema: Any) -> str:
        """The text of a schema and of all that it refers to."""
        texts, waiting, opened = [text_of(schema)], [(schema, node.file)], set()
        while waiting:
            value, file = waiting.pop()
            for ref in references(value):
                if (file, ref) in opened:
                    continue
                opened.add((file, ref))
                self._work.spend()
                target = self._resolver.resolve(Located({"$ref": ref}, (), file))
                if isinstance(target, Located):
                    texts.append(text_of(target.schema))
                    waiting.append((target.schema, target.file))
        return "\n".join([texts[0], *sorted(texts[1:])])

    def _product(self, first: Atoms, second: Atoms) -> Atoms:
        self._work.spend(len(first) * len(second))
        joined = [
            both
            for each in first
            for two in second
            if (both := meet(each, two, self.member)) is not None and both.values != ()
        ]
        return tuple(joined) if len(joined) <= ATOMS_MAX else _undecided(joined[0].at, "allOf")


_ANY: Atoms = tuple(Atom(kind, SchemaNode(True, (), "")) for kind in TYPES)


def _undecided(node: SchemaNode, keyword: str) -> Atoms:
    """A schema that isn't worked out: equal to itself, and unknown against any other."""
    opaque = frozenset({(keyword, text_of(node.raw))})
    return tuple(Atom(kind, node, opaque=opaque) for kind in TYPES)


def _part(node: SchemaNode, schema: Any, *steps: str | int) -> SchemaNode:
    return SchemaNode(schema, (*node.path, *steps), node.file)


def _listed(raw: dict[str, Any], key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []


def _values(raw: dict[str, Any]) -> list[Any] | None:
    """The only values that a schema allows, by `enum` and `const`."""
    enum = raw.get("enum")
    values = list(enum) if isinstance(enum, list) else None
    if "const" not in raw:
        return values
    constant = text_of(raw["const"])
    fits = values is None or any(text_of(value) == constant for value in values)
    return [raw["const"]] if fits else []
