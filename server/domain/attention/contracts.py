"""What waits on a contract, and for whom (design §5, §7)."""

from collections.abc import Iterator

from schemas.attention import AttentionKind
from schemas.contract import UNSETTLED
from schemas.facts import ImplementationFact, ResponseFact, VerificationFact, VersionFact
from server.domain.attention.items import Opening, item_id
from server.domain.contract import (
    Facts,
    ancestors_of,
    conflicts_of,
    current_of,
    facts_about,
    others_of,
    round_of,
    status_of,
)


def openings(project_id: str, contract_id: str, facts: Facts) -> list[Opening]:
    """What waits on a contract, for all repos."""
    return [
        *_to_answer(project_id, contract_id, facts),
        *_to_build(project_id, contract_id, facts),
        *_lost(project_id, contract_id, facts),
    ]


def _to_answer(project_id: str, contract_id: str, facts: Facts) -> Iterator[Opening]:
    """A version that is not agreed: who must respond to it, and who must revise it."""
    if status_of(facts) not in UNSETTLED:
        return
    current = current_of(facts)
    answered = {fact.repo_id for fact in facts_about(facts, current, ResponseFact)}
    others = others_of(current)
    # Nobody may agree to its own version, unless there is no other party.
    author = "" if others == {current.repo_id} else current.agent_id
    for repo_id in sorted(others - answered):
        yield Opening(
            item_id("respond", contract_id, current.key, repo_id),
            "respond",
            "high",
            current.stamp,
            project_id,
            repo_id,
            not_agent=author,
        )
    objections = objections_of(facts)
    if not objections:
        return
    standing = [(fact.repo_id, fact.action, fact.stamp) for fact in objections]
    # Only a party may write the next version. If the author is none, any of them may.
    for repo_id in [current.repo_id] if current.repo_id in current.parties else current.parties:
        yield Opening(
            item_id("revise", contract_id, current.key, repo_id, *standing),
            "revise",
            "high",
            min(fact.stamp for fact in objections),
            project_id,
            repo_id,
        )


def _to_build(project_id: str, contract_id: str, facts: Facts) -> Iterator[Opening]:
    """An agreed version: who must implement it, and who must verify it."""
    status, current = status_of(facts), current_of(facts)
    number = round_of(facts, current)
    if status == "agreed":
        done = {
            fact.repo_id
            for fact in facts_about(facts, current, ImplementationFact)
            if fact.round == number and fact.status == "complete"
        }
        agreed_at = max(fact.stamp for fact in facts_about(facts, current, ResponseFact))
        repairs = number > 1
        opened_at = facts["round", current.place].stamp if repairs else agreed_at
        kind: AttentionKind = "repair" if repairs else "implement"
        for repo_id in sorted(set(current.parties) - done):
            yield Opening(
                item_id(kind, contract_id, current.key, number, repo_id),
                kind,
                "high" if repairs else "normal",
                opened_at,
                project_id,
                repo_id,
            )
    elif status == "implemented":
        work = facts_about(facts, current, ImplementationFact)
        completed_at = max(
            (fact.stamp for fact in work if fact.round == number), default=current.stamp
        )
        for repo_id in sorted(set(current.parties)):
            yield Opening(
                item_id("verify", contract_id, current.key, number, repo_id),
                "verify",
                "normal",
                completed_at,
                project_id,
                repo_id,
            )


def _lost(project_id: str, contract_id: str, facts: Facts) -> Iterator[Opening]:
    """Versions that lost a race, until their authors have taken a step on what won."""
    lost_by: dict[str, list[VersionFact]] = {}
    for lost in conflicts_of(facts):
        if not has_moved_on(facts, lost):
            lost_by.setdefault(lost.repo_id, []).append(lost)
    current = current_of(facts)
    for repo_id, versions in sorted(lost_by.items()):
        keys = [version.key for version in versions]
        yield Opening(
            item_id("conflict", contract_id, current.key, repo_id, *keys),
            "conflict",
            "high",
            max(current.stamp, *(version.stamp for version in versions)),
            project_id,
            repo_id,
        )


def has_moved_on(facts: Facts, lost: VersionFact) -> bool:
    """Whether the author of a lost version has since written, answered, built or verified a version
    of the line that won."""
    line = [*ancestors_of(facts), current_of(facts)]
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
