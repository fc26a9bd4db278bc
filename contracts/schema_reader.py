"""Reads the schemas of an interface into their normal form (`schema_atoms`).

It follows references, works out the keywords that join schemas, and takes each draft by its rules:
boolean bounds of OpenAPI 3.0, lists of `items` of draft-07, what stands beside a
`$ref` since 2019-09. A member that is only read doesn't belong to requests, one that is only
written not to responses.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import regex

from contracts.json_text import text_of, value_key
from contracts.model import Interface, Located
from contracts.refs import WORDS, Resolver
from contracts.sameness import references
from contracts.schema_atoms import TYPES, Atom, SchemaNode, View, is_integer, meet, value_type
from contracts.schema_keywords import KeywordReader
from contracts.schema_overlap import apart
from contracts.subschemas import adds_null
from contracts.work import Work
from schemas.dialect import Direction

ATOMS_MAX = 100
"""Alternatives of one schema; one that has more is not worked out."""
DEPTH_MAX = 100
"""Schemas that join others, one within the other, without a value between."""
MATCHING = ((0.0001, 60), (0.001, 600), (0.05, 30_000))
"""The seconds that a pattern may take over a text, and the steps that they count for. Beyond the
last, nobody knows whether it matches."""
ATOM_STEPS = 3
MEET_STEPS = 5
TEXT_STEP = 64
"""Steps to make an alternative, and to join two; characters of text for one step. A step is a
microsecond or two."""
TEXT_MAX = 2_000
"""Characters of an opaque keyword's text, beyond which a digest stands for it."""

Atoms = tuple[Atom, ...]
Key = tuple[int, ...]


def key_of(view: View) -> Key:
    return tuple(id(node.raw) for node in view)


class SchemaReader:
    """The schemas of one interface, for what goes in one direction."""

    def __init__(self, interface: Interface, direction: Direction, work: Work) -> None:
        self.interface = interface
        self.work = work
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._kept: dict[Key, tuple[View, Atoms]] = {}
        self._settled: dict[int, tuple[SchemaNode, SchemaNode]] = {}
        self._resolver = Resolver(interface.document, interface.files, interface.draft == "2020-12")
        self._nodes: dict[int, tuple[SchemaNode, Atoms]] = {}
        self._open: list[int] = []
        self._met = 0
        """The first open node, by its place in `_open`, that was met again below the last one."""
        self._matches: dict[tuple[str, str], bool | None] = {}
        self._patterns: set[str] = set()

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
            self.work.spend()
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
        self.work.spend(len(atom.patterns))
        matching = [
            each
            for pattern, each in atom.patterns.items()
            if self.matches(pattern, name) is not False
        ]
        if matching:
            return tuple(node for each in (view or (), *matching) for node in each)
        return (atom.rest or ()) if view is None else view

    def matches(self, pattern: str, text: str) -> bool | None:
        """Whether a pattern is found in a text; None if that can't be told. Raises TooMuchWork."""
        key = (pattern, text)
        if key not in self._matches:
            self._matches[key] = self._matching(pattern, text)
        return self._matches[key]

    def _matching(self, pattern: str, text: str) -> bool | None:
        if pattern not in self._patterns:
            self._patterns.add(pattern)
            self.work.spend(100 + 10 * len(pattern))
        for seconds, steps in MATCHING:
            self.work.spend(steps)
            try:
                return regex.search(pattern, text, timeout=seconds) is not None
            except TimeoutError:
                continue
            except (regex.error, RecursionError):
                return None
        return None

    def _of_node(self, node: SchemaNode) -> Atoms:
        raw = node.raw
        if raw is True:
            return _ANY
        if raw is False:
            return ()
        self.work.spend()
        known = self._nodes.get(id(raw))
        if known is not None:
            return known[1]
        place = len(self._open)
        if not isinstance(raw, dict):
            return self._undecided(node, "schema")
        if place > DEPTH_MAX:
            return self._undecided(node, "depth")
        if id(raw) in self._open:
            self._met = min(self._met, self._open.index(id(raw)))
            return self._undecided(node, "cycle")
        before, self._met = self._met, place
        self._open.append(id(raw))
        try:
            atoms = self._of_schema(node)
        finally:
            self._open.pop()
        if self._met == place:
            # Nothing in it leads back to what it stands in, so it means the same anywhere.
            self._nodes[id(raw)] = (node, atoms)
            self._met = before
        else:
            self._met = min(self._met, before)
        return atoms

    def _of_schema(self, node: SchemaNode) -> Atoms:
        raw = node.raw
        atoms = _ANY
        if isinstance(raw.get("$ref"), str):
            target = self._resolve(node)
            atoms = self._undecided(node, "$ref") if target is None else self._of_node(target)
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
        if adds_null(raw):
            atoms = (*(each for each in atoms if each.type != "null"), Atom("null", node))
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
        keyed: dict[str, dict[str, Any]] = {}
        for value in listed or ():
            key = value_key(value)
            self.work.spend(1 + len(key) // TEXT_STEP)
            keyed.setdefault(value_type(value), {}).setdefault(key, value)
        atoms = []
        for kind in TYPES:
            if kind not in kinds:
                continue
            whole = kind == "number" and not kinds[kind]
            if listed is None:
                atoms.append(reader.atom(kind, None, whole))
                continue
            of_kind = keyed.get(kind, {})
            if whole:
                of_kind = {key: value for key, value in of_kind.items() if is_integer(value)}
            if of_kind:
                atoms.append(reader.atom(kind, of_kind, whole))
        self.work.spend(sum(ATOM_STEPS + atom.size for atom in atoms))
        return tuple(atoms)

    def _of_choice(self, node: SchemaNode, key: str) -> Atoms:
        branches = [
            self._of_node(_part(node, part, key, place))
            for place, part in enumerate(_listed(node.raw, key))
        ]
        atoms = tuple(atom for branch in branches for atom in branch)
        if len(atoms) > ATOMS_MAX:
            return self._undecided(node, key)
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
        others = [
            each for number, branch in enumerate(branches) if number != own for each in branch
        ]
        self.work.spend(len(others))
        return tuple(each for each in others if not apart(atom, each, self.member, self.work))

    def _whole_text(self, node: SchemaNode, schema: Any) -> str:
        """The text of a schema and of all that it refers to, or what stands for it."""
        texts, waiting, opened = [self._text(schema)], [(schema, node.file)], set()
        while waiting:
            value, file = waiting.pop()
            for ref in references(value):
                if (file, ref) in opened:
                    continue
                opened.add((file, ref))
                self.work.spend()
                target = self._resolver.resolve(Located({"$ref": ref}, (), file))
                if isinstance(target, Located):
                    texts.append(self._text(target.schema))
                    waiting.append((target.schema, target.file))
        return "\n".join([texts[0], *sorted(texts[1:])])

    def _text(self, schema: Any) -> str:
        """The text of a schema; of a long one its beginning and a digest, which tell it apart."""
        text = text_of(schema)
        self.work.spend(len(text) // TEXT_STEP)
        if len(text) <= TEXT_MAX:
            return text
        return f"{text[:TEXT_MAX]}… {sha256(text.encode(errors='surrogatepass')).hexdigest()}"

    def _product(self, first: Atoms, second: Atoms) -> Atoms:
        if first is second:
            return first
        self.work.spend(len(first) * len(second))
        joined = []
        for each in first:
            for two in second:
                both = meet(each, two, self.member)
                if both is None:
                    continue
                self.work.spend(MEET_STEPS + both.size)
                if both.values is None or both.values:
                    joined.append(both)
        return tuple(joined) if len(joined) <= ATOMS_MAX else self._undecided(joined[0].at, "allOf")

    def _undecided(self, node: SchemaNode, keyword: str) -> Atoms:
        """A schema that isn't worked out: equal to itself, and unknown against any other."""
        opaque = frozenset({(keyword, self._text(node.raw))})
        return tuple(Atom(kind, node, opaque=opaque) for kind in TYPES)


_ANY: Atoms = tuple(Atom(kind, SchemaNode(True, (), "")) for kind in TYPES)


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
    constant = value_key(raw["const"])
    fits = values is None or any(value_key(value) == constant for value in values)
    return [raw["const"]] if fits else []
