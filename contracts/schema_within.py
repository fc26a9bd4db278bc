"""Whether all that a sender may send is accepted by a receiver: the one question that every verdict
on schemas comes from.

The sender keeps to one content's schema, the receiver to the other's. A sender sends the members
that its schema names; others only where the schema says what they are (`additionalProperties`,
`patternProperties`), or names none at all. A receiver ignores members that it doesn't name, unless
it says otherwise.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from contracts.json_text import shown
from contracts.model import Path, Side
from contracts.schema_atoms import Atom, View, below, is_nothing
from contracts.schema_examples import examples
from contracts.schema_gaps import Nested, SchemaGap, array_gaps, is_empty_range, plain_gaps
from contracts.schema_keywords import ANNOTATIONS
from contracts.schema_objects import ObjectPair
from contracts.schema_overlap import apart
from contracts.schema_reader import Key, SchemaReader, key_of
from contracts.schema_values import accepts_atom
from contracts.work import Work

Findings = frozenset[int]
NONE: Findings = frozenset()
DEPTH_MAX = 40
"""Schemas within schemas that are compared at one go."""
_WRITTEN = frozenset({"number", "boolean"})
"""Types that are texts in a URL or a header."""
PAIR_STEPS = 6
"""Steps to compare two schemas, beside those for what is in them."""
_FEW: dict[str, tuple[Any, ...]] = {"null": (None,), "boolean": (False, True)}
"""Types of few values, which are looked at one by one."""


class SchemaFinding(NamedTuple):
    """Something that may be sent and isn't accepted for certain."""

    path: Path
    rule: str
    effect: Literal["breaking", "unknown"]
    before: Any
    after: Any
    why: str | None


class Containment:
    """One sender and one receiver. `forward`: the sender keeps to the older content. `as_text`:
    numbers and truth values are written as texts, as in a URL."""

    def __init__(
        self,
        sender: SchemaReader,
        receiver: SchemaReader,
        *,
        sent_by: Side,
        forward: bool,
        work: Work,
        as_text: bool = False,
    ) -> None:
        self.sender, self.receiver = sender, receiver
        self.sent_by, self.forward = sent_by, forward
        self.findings: list[SchemaFinding] = []
        self._work, self._as_text = work, as_text
        self._kept: dict[tuple[Key, Key], Findings] = {}
        self._views: list[tuple[View, View]] = []
        self._alike = sender.interface.draft == receiver.interface.draft
        self._depth = 0
        self._deferred: list[tuple[View, View, Path]] = []
        self._examples: dict[int, tuple[Atom, list[Any]]] = {}

    def findings_of(self, sub: View, sup: View, at: Path) -> Findings:
        """What of `sub`, as it is sent, `sup` doesn't accept, however deep. `at` is where both
        stand if neither says so. Raises TooMuchWork."""
        findings = self.within(sub, sup, at)
        while self._deferred:
            findings |= self.within(*self._deferred.pop())
        return findings

    def within(self, sub: View, sup: View, at: Path) -> Findings:
        """The same, but for what lies deeper than the stack allows: it counts as accepted here, and
        is looked at on its own."""
        if self._alike and _is_same_leaf(sub, sup):
            return NONE
        sub, sup = self.sender.settled(sub), self.receiver.settled(sup)
        if not sup or is_nothing(sub):
            return NONE
        key = (key_of(sub), key_of(sup))
        known = self._kept.get(key)
        if known is not None:
            return known
        if self._depth > DEPTH_MAX:
            self._deferred.append((sub, sup, at))
            return NONE
        # A schema that holds itself is within another as long as nothing else says no.
        self._kept[key] = NONE
        self._views.append((sub, sup))
        self._work.spend(PAIR_STEPS)
        self._depth += 1
        try:
            findings = self._kept[key] = self._compare(sub, sup, at)
        finally:
            self._depth -= 1
        return findings

    def _compare(self, sub: View, sup: View, at: Path) -> Findings:
        sent, accepted = self.sender.atoms(sub), self.receiver.atoms(sup)
        sent = tuple(atom for atom in sent if not self._is_empty(atom))
        texts = [atom for atom in accepted if atom.type == "string"] if self._as_text else []
        if any(map(_is_any_text, texts)):
            sent = tuple(atom for atom in sent if atom.type not in _WRITTEN)
        if not sent:
            return NONE
        here = self._place(sub, sup, at)
        if not accepted:
            return self._note(here, "refused", *self._pair(sub[0].raw if sub else True, False))
        kinds = {atom.type for atom in accepted}
        missing = sorted({atom.type for atom in sent} - kinds)
        all_found = (
            self._types(self._place(sub, sup, at, "type"), missing, sent, accepted)
            if missing
            else NONE
        )
        if all(
            _has_doubt(atom) or _may_be_text(atom, texts) for atom in sent if atom.type in missing
        ):
            all_found = self._doubtful(all_found)
        for atom in sent:
            candidates = [candidate for candidate in accepted if candidate.type == atom.type]
            if candidates:
                all_found |= self._alternative(atom, candidates, here)
        return all_found

    def _alternative(self, atom: Atom, candidates: Sequence[Atom], here: Path) -> Findings:
        """An alternative of the sender against those of its type that the receiver has."""
        if atom.values is not None or atom.type in _FEW:
            return self._values(atom, candidates)
        self._work.spend(len(candidates))
        near = list(candidates)
        if len(near) > 1:
            members = self.sender.member, self.receiver.member
            near = [
                candidate
                for candidate in near
                if not apart(atom, candidate, members[0], self._work, members[1])
            ]
        if not near:
            rule = "alternative_removed" if self.forward else "alternative_added"
            return self._note(atom.at.path, rule, *self._one_side(atom.at.raw))
        answers = [self._against(atom, candidate, here) for candidate in near]
        if NONE in answers:
            return NONE
        least = min(answers, key=len)
        # What no alternative accepts alone, several may accept together.
        if len(near) == 1 or self._is_refused(atom, near):
            return least
        return self._doubtful(least)

    def _is_refused(self, atom: Atom, candidates: Sequence[Atom]) -> bool:
        """Whether a value is known that may be sent, and that no candidate accepts."""
        known = self._examples.get(id(atom))
        if known is None:
            known = self._examples[id(atom)] = (atom, list(examples(self.sender, atom)))
        for value in known[1]:
            self._work.spend(len(candidates))
            if all(
                accepts_atom(self.receiver, candidate, value) is False for candidate in candidates
            ):
                return True
        return False

    def _against(self, sub: Atom, sup: Atom, here: Path) -> Findings:
        if sup.values is not None:
            before, after = self._pair(
                list(sub.values.values()) if sub.values else None, list(sup.values.values())
            )
            rule = "enum_added" if self.forward else "enum_removed"
            return self._note(self._at(sub, sup, "enum"), rule, before, after)
        gathered: set[int] = set()
        self._work.spend(3 + sub.size + sup.size)
        for gap in self._gaps(sub, sup):
            self._work.spend()
            if isinstance(gap, SchemaGap):
                path = self._at(sub, sup, *gap.steps)
                before, after = self._pair(gap.sub, gap.sup)
                nested = self._note(path, gap.rule, before, after, doubt=gap.doubt, why=gap.why)
            else:
                nested = self.within(gap.sub, gap.sup, (*here, *gap.steps))
            self._work.spend(len(nested))
            gathered |= nested
        findings = frozenset(gathered)
        if sub.opaque and findings and _has_doubt(sub) and not self._is_refused(sub, [sup]):
            # They narrow what is sent, so that it may be accepted after all.
            findings = self._doubtful(findings)
        for keyword, text in sorted(sup.opaque - sub.opaque):
            findings |= self._opaque(sub, sup, keyword, text)
        return findings

    def _gaps(self, sub: Atom, sup: Atom) -> Iterator[SchemaGap | Nested]:
        yield from plain_gaps(sub, sup)
        if sub.type == "array":
            yield from array_gaps(sub, sup)
        elif sub.type == "object":
            members = self.sender.member, self.receiver.member
            yield from ObjectPair(sub, sup, members, self.sent_by, self.forward).gaps()

    def _opaque(self, sub: Atom, sup: Atom, keyword: str, text: str) -> Findings:
        other = next((candidate for key, candidate in sub.opaque if key == keyword), None)
        path = self._at(sub, sup, keyword)
        why = f"What {keyword} allows beside the rest isn't worked out."
        return self._note(path, f"{keyword}_changed", *self._pair(other, text), doubt=True, why=why)

    def _values(self, atom: Atom, candidates: Sequence[Atom]) -> Findings:
        """Listed values, each held against what is accepted."""
        refused: list[Any] = []
        doubt = True
        values: Iterable[Any] = _FEW[atom.type] if atom.values is None else atom.values.values()
        for value in values:
            if accepts_atom(self.sender, atom, value) is False:
                continue
            answers = {accepts_atom(self.receiver, candidate, value) for candidate in candidates}
            if True not in answers:
                refused.append(value)
                doubt = doubt and None in answers
        if not refused:
            return NONE
        rule = "enum_value_removed" if self.forward else "enum_value_added"
        path = self._at(atom, candidates[0], "enum")
        doubt = doubt or _has_doubt(atom)
        return self._note(path, rule, *self._one_side(refused), doubt=doubt)

    def _types(
        self, path: Path, missing: list[str], sent: Sequence[Atom], accepted: Sequence[Atom]
    ) -> Findings:
        before, after = self._pair(_names(sent), _names(accepted))
        if missing == ["null"]:
            rule = "null_removed" if self.forward else "null_added"
        else:
            rule = "type_changed"
        return self._note(path, rule, before, after)

    def _is_empty(self, atom: Atom) -> bool:
        """Whether no value fits, for a reason that stands nearby."""
        low, high = atom.low, atom.high
        self._work.spend(1 + len(atom.required) + len(atom.prefix))
        if low is not None and high is not None and is_empty_range(low, high, atom.integer):
            return True
        if atom.type == "array":
            return atom.bounds.get("minItems", 0) > self._most_items(atom)
        for least, most in (("minLength", "maxLength"), ("minProperties", "maxProperties")):
            if atom.bounds.get(least, 0) > atom.bounds.get(most, 2**60):
                return True
        return self._lacks_members(atom)

    def _most_items(self, atom: Atom) -> int:
        """How many elements an array can have."""
        most = atom.bounds.get("maxItems", 2**60)
        for place in range(min(len(atom.prefix), most)):
            if not self.sender.atoms(atom.prefix[place]):
                return place
        return most if self.sender.atoms(atom.items) else min(most, len(atom.prefix))

    def _lacks_members(self, atom: Atom) -> bool:
        """Whether an object can't have the members that it must."""
        member, atoms = self.sender.member, self.sender.atoms
        if any(not atoms(member(atom, name)) for name in atom.required):
            return True
        least = atom.bounds.get("minProperties", len(atom.required))
        if (
            least
            and atom.names
            and all(candidate.type != "string" for candidate in atoms(atom.names))
        ):
            return True
        names_all = atom.rest is None and bool(atom.members) and not atom.patterns
        return names_all and least > len(atom.members)

    def _note(
        self,
        path: Path,
        rule: str,
        before: Any = None,
        after: Any = None,
        *,
        doubt: bool = False,
        why: str | None = None,
    ) -> Findings:
        """A finding: breaking, or unknown where there is doubt."""
        self.findings.append(
            SchemaFinding(path, rule, "unknown" if doubt else "breaking", before, after, why)
        )
        return frozenset({len(self.findings) - 1})

    def _doubtful(self, findings: Findings) -> Findings:
        """The same findings, as unknown."""
        doubtful = set()
        self._work.spend(len(findings))
        for number in findings:
            finding = self.findings[number]
            if finding.effect == "unknown":
                doubtful.add(number)
            else:
                self.findings.append(finding._replace(effect="unknown", why=None))
                doubtful.add(len(self.findings) - 1)
        return frozenset(doubtful)

    def _pair(self, sub: Any, sup: Any) -> tuple[Any, Any]:
        """A value of the sender and one of the receiver as before and after."""
        return (sub, sup) if self.forward else (sup, sub)

    def _one_side(self, sub: Any) -> tuple[Any, Any]:
        """A value that only the sender has, as before and after."""
        return self._pair(shown(sub), None)

    def _at(self, sub: Atom, sup: Atom, *steps: str | int) -> Path:
        """The path of a keyword: in the newer content if it is there, else in the older."""
        before, after = self._pair(sub, sup)
        return _path_in(after, steps) or _path_in(before, steps) or below(after.at, steps)

    def _place(self, sub: View, sup: View, at: Path, *steps: str) -> Path:
        """Where two views stand: in the newer content if it says so, else in the older."""
        before, after = self._pair(sub, sup)
        view = after or before
        if not view or not view[0].path:
            return (*at, *steps)
        return below(view[0], steps) if steps else view[0].path


def _is_any_text(atom: Atom) -> bool:
    """Whether an alternative takes every text that a value is written as."""
    bounds = {key for key, least in atom.bounds.items() if key != "minLength" or least > 1}
    return atom.values is None and not (bounds or atom.texts or atom.opaque)


def _may_be_text(atom: Atom, texts: Sequence[Atom]) -> bool:
    """Whether a value may be one of these texts, once it is written as a text."""
    is_listed = atom.values is not None or atom.type in _FEW
    return atom.type in _WRITTEN and any(text.values is None or is_listed for text in texts)


_LEAF = frozenset({"type", "format", "pattern", "minLength", "maxLength", *ANNOTATIONS})


def _is_same_leaf(sub: View, sup: View) -> bool:
    """Whether two schemas are the same and hold no others, as most members are and do."""
    if len(sub) != 1 or len(sup) != 1:
        return False
    raw, other = sub[0].raw, sup[0].raw
    return isinstance(raw, dict) and raw == other and raw.keys() <= _LEAF


def _has_doubt(atom: Atom) -> bool:
    """Whether something that isn't worked out narrows what is sent."""
    return any(keyword != "discriminator" for keyword, _ in atom.opaque)


def _path_in(atom: Atom, steps: Sequence[str | int]) -> Path | None:
    raw = atom.at.raw
    for step in steps:
        if not isinstance(raw, dict) or step not in raw:
            return None
        raw = raw[step]
    return below(atom.at, tuple(steps))


def _names(atoms: Sequence[Atom]) -> list[str]:
    """The types of alternatives, as a schema names them."""
    names = {"integer" if atom.integer else atom.type for atom in atoms}
    return sorted(names - {"integer"} if "number" in names else names)
