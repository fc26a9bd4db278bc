"""Gaps between a sender's objects and a receiver's, by member."""

from collections.abc import Iterator

from contracts.model import Side
from contracts.schema_atoms import NOTHING, Atom, View, is_nothing
from contracts.schema_gaps import Nested, SchemaGap
from contracts.schema_overlap import Member

LOST = "What is sent may only become more: who reads this member finds it no longer."
IGNORED = "It is ignored from now on; whether a consumer relies on it can't be told."
NOT_YET = "A provider as built today ignores it; whether a consumer relies on it can't be told."

UNNAMED = {
    True: "Members that no schema names were ignored; whether any are sent can't be told.",
    False: "Members that no schema names are ignored from now on; before, they may be refused.",
}


class ObjectPair:
    """Two alternatives for objects. `forward`: the sender keeps to the older content."""

    def __init__(
        self,
        sub: Atom,
        sup: Atom,
        members: tuple[Member, Member],
        sent_by: Side,
        forward: bool,
    ) -> None:
        self.sub, self.sup = sub, sup
        self._sent, self._accepted = members
        self._sent_by, self._forward = sent_by, forward
        self.before, self.after = (sub, sup) if forward else (sup, sub)
        names_none = not sub.members and not sub.patterns
        self.free = sub.rest is None and names_none
        """Whether nothing is said of the members that are sent: it may be any."""

    def gaps(self) -> Iterator[SchemaGap | Nested]:
        for name in sorted(self.sup.required - self.sub.required):
            yield self._member_gap(name)
        for name in self.sub.members:
            yield from self._sent_member(name, self._sent(self.sub, name))
        for name, view in self.sup.members.items():
            if name not in self.sub.members:
                yield from self._unnamed_member(name, view)
        yield from self._others()
        yield from self._patterns()
        if self.sup.names:
            yield from self._names()

    def _member_gap(self, name: str, doubt: bool = False, why: str | None = None) -> SchemaGap:
        """A member by name: the rule says what became of it."""
        was = name in self.before.members or name in self.before.required
        is_ = name in self.after.members or name in self.after.required
        needed_before, needed_after = name in self.before.required, name in self.after.required
        if was and is_:
            rule = "became_required" if needed_after else "became_optional"
            if needed_before == needed_after:
                rule = "member_changed"
        elif is_:
            rule = "required_member_added" if needed_after else "member_added"
        else:
            rule = "required_member_removed" if needed_before else "member_removed"
        sub, sup = (_shown(atom.members.get(name)) for atom in (self.sub, self.sup))
        if rule.startswith("became"):
            sub = sup = None
        return SchemaGap(("properties", name), rule, sub, sup, doubt, why)

    def _sent_member(self, name: str, view: View) -> Iterator[SchemaGap | Nested]:
        if is_nothing(view):
            return
        accepted = self._accepted(self.sup, name)
        if is_nothing(accepted):
            yield self._member_gap(name)
        elif name in self.sup.members or accepted:
            yield Nested(("properties", name), view, accepted)
        elif self._sent_by == "consumer":
            yield self._member_gap(name, doubt=True, why=IGNORED if self._forward else NOT_YET)

    def _unnamed_member(self, name: str, view: View) -> Iterator[SchemaGap | Nested]:
        """A member that only the receiver names."""
        if name in self.sup.required and name not in self.sub.required:
            return
        sent = self._sent(self.sub, name)
        if self.free:
            if view:
                yield self._member_gap(name)
        elif (self.sub.rest is not None or sent) and not is_nothing(sent):
            yield Nested(("properties", name), sent, view)
        else:
            yield from self._lost(name)

    def _lost(self, name: str) -> Iterator[SchemaGap]:
        if self._sent_by == "provider" and not self._forward:
            yield self._member_gap(name, why=LOST)

    def _others(self) -> Iterator[SchemaGap | Nested]:
        """Members that neither names."""
        sent, accepted = self.sub.rest, self.sup.rest
        steps = ("additionalProperties",)
        if accepted is None or not accepted or is_nothing(sent):
            return
        if sent is not None:
            if is_nothing(accepted):
                yield SchemaGap(steps, self._closing(), _shown(sent), False)
            else:
                yield Nested(steps, sent, accepted)
        elif self.free:
            yield SchemaGap(steps, self._closing(), None, _shown(accepted))
        elif not self.sub.patterns:
            yield SchemaGap(
                steps, self._closing(), None, _shown(accepted), True, UNNAMED[self._forward]
            )

    def _closing(self) -> str:
        return "closed" if self._forward else "opened"

    def _patterns(self) -> Iterator[SchemaGap | Nested]:
        for pattern, view in self.sub.patterns.items():
            steps = ("patternProperties", pattern)
            if pattern in self.sup.patterns:
                yield Nested(steps, view, self.sup.patterns[pattern])
            elif self.sup.rest is not None and is_nothing(self.sup.rest):
                yield SchemaGap(steps, "pattern_members_changed", _shown(view), None, doubt=True)
            elif self.sup.rest:
                yield Nested(steps, view, self.sup.rest)
        others = self.free or (self.sub.rest is not None and not is_nothing(self.sub.rest))
        for pattern, view in self.sup.patterns.items():
            steps = ("patternProperties", pattern)
            if pattern not in self.sub.patterns and (others or self.sub.patterns):
                yield SchemaGap(steps, "pattern_members_changed", None, _shown(view), doubt=True)

    def _names(self) -> Iterator[SchemaGap | Nested]:
        """`propertyNames`, held against names that aren't written."""
        if self.sub.names:
            yield Nested(("propertyNames",), self.sub.names, self.sup.names)
        elif self.free or self.sub.rest is not None or self.sub.patterns or self.sub.members:
            yield SchemaGap(
                ("propertyNames",), "names_changed", None, _shown(self.sup.names), doubt=True
            )


def _shown(view: View | None) -> object:
    if view is None:
        return None
    if view == NOTHING:
        return False
    return view[0].raw if view else {}
