"""What waits on a contract, and for whom (design §5, §7)."""

from collections.abc import Iterator
from typing import NamedTuple

from schemas.attention import AttentionKind
from schemas.contract import UNSETTLED, ContractStatus
from schemas.facts import ImplementationFact, ResponseFact, VerificationFact, VersionFact
from server.domain.attention.items import Opening, item_id
from server.domain.contract import (
    Facts,
    asks_for_receipts,
    conflicts_of,
    current_of,
    facts_about,
    line_of,
    others_of,
    round_of,
    status_of,
    unproven_sides,
)


def openings(project_id: str, contract_id: str, facts: Facts) -> list[Opening]:
    """What waits on a contract, for all repos."""
    return openings_at(project_id, contract_id, facts, current_of(facts), status_of(facts))


def openings_at(
    project_id: str, contract_id: str, facts: Facts, current: VersionFact, status: ContractStatus
) -> list[Opening]:
    """The same, for a caller that knows the current version and the status already."""
    place = _Place(project_id, contract_id, current)
    opened: list[Opening] = []
    if status in UNSETTLED:
        opened += _to_answer(place, facts)
    elif status != "verified":
        opened += _to_build(place, facts, is_agreed=status == "agreed")
    opened += _lost(place, facts)
    return opened


def first_openings(project_id: str, contract_id: str, version: VersionFact) -> Iterator[Opening]:
    """The same of a contract that has only its first version."""
    return _to_answer(_Place(project_id, contract_id, version), {})


class _Place(NamedTuple):
    """A contract and its current version."""

    project_id: str
    contract_id: str
    current: VersionFact

    def item_id(self, kind: AttentionKind, *parts: object) -> str:
        current = self.current
        version = (self.contract_id, current.version, current.digest, current.parties)
        return item_id(kind, version, *parts)


def _to_answer(place: _Place, facts: Facts) -> Iterator[Opening]:
    """A version that is not agreed: who must respond to it, and who must revise it."""
    project_id, _, current = place
    responses = [*facts_about(facts, current, ResponseFact)]
    others = others_of(current)
    # Nobody may agree to its own version, unless there is no other party.
    author = "" if others == {current.repo_id} else current.agent_id
    for repo_id in sorted(others - {fact.repo_id for fact in responses}):
        yield Opening(
            place.item_id("respond", repo_id),
            "respond",
            "high",
            current.stamp,
            project_id,
            repo_id,
            not_agent=author,
        )
    objections = [fact for fact in responses if fact.action != "agree"] and objections_of(facts)
    if not objections:
        return
    standing = [(fact.repo_id, fact.action, fact.stamp) for fact in objections]
    # Only a party may write the next version. If the author is none, any of them may.
    parties = set(current.parties)
    for repo_id in sorted({current.repo_id} & parties or parties):
        yield Opening(
            place.item_id("revise", repo_id, *standing),
            "revise",
            "high",
            min(fact.stamp for fact in objections),
            project_id,
            repo_id,
        )


def _to_build(place: _Place, facts: Facts, *, is_agreed: bool) -> Iterator[Opening]:
    """An agreed version: who must implement it or, once all have, who must verify it: where it is
    verified by receipts, those whose work none proves."""
    project_id, _, current = place
    number = round_of(facts, current)
    work = [
        fact for fact in facts_about(facts, current, ImplementationFact) if fact.round == number
    ]
    kind: AttentionKind = "verify"
    since = max((fact.stamp for fact in work), default=current.stamp)
    waiting = set(current.parties)
    if is_agreed:
        kind = "implement" if number == 1 else "repair"
        since = (
            max(fact.stamp for fact in facts_about(facts, current, ResponseFact))
            if number == 1
            else facts["round", current.place].stamp
        )
        waiting -= {fact.repo_id for fact in work if fact.status == "complete"}
    elif asks_for_receipts(facts, current):
        # A word would be recorded, and close nothing.
        waiting = {repo_id for repo_id, _ in unproven_sides(facts)}
    for repo_id in sorted(waiting):
        yield Opening(
            place.item_id(kind, number, repo_id),
            kind,
            "high" if kind == "repair" else "normal",
            since,
            project_id,
            repo_id,
        )


def _lost(place: _Place, facts: Facts) -> Iterator[Opening]:
    """Versions that lost a race, until their authors have taken a step on what won."""
    project_id, _, current = place
    lost_by: dict[str, list[VersionFact]] = {}
    for lost in conflicts_of(facts):
        if not has_moved_on(facts, lost):
            lost_by.setdefault(lost.repo_id, []).append(lost)
    for repo_id, versions in sorted(lost_by.items()):
        keys = [version.key for version in versions]
        yield Opening(
            place.item_id("conflict", repo_id, *keys),
            "conflict",
            "high",
            max(current.stamp, *(version.stamp for version in versions)),
            project_id,
            repo_id,
        )


def has_moved_on(facts: Facts, lost: VersionFact) -> bool:
    """Whether the author of a lost version has since written, answered, built or verified a version
    of the line that won."""
    line = line_of(facts)
    if any(fact.repo_id == lost.repo_id and fact.version >= lost.version for fact in line):
        return True
    places = {fact.place for fact in line if fact.version >= lost.version}
    return any(
        isinstance(fact, ResponseFact | ImplementationFact | VerificationFact)
        and fact.repo_id == lost.repo_id
        and fact.place in places
        for fact in facts.values()
    )


def objections_of(facts: Facts) -> list[ResponseFact]:
    """The requests for a change, and the rejections by parties, that stand on the current version;
    the oldest first."""
    current = current_of(facts)
    standing = [
        fact
        for fact in facts_about(facts, current, ResponseFact)
        if fact.action == "request_change"
        or (fact.action == "reject" and fact.repo_id in current.parties)
    ]
    return sorted(standing, key=lambda fact: (fact.stamp, fact.repo_id))
