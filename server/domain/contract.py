"""Contracts as facts: their join, and the status that follows from them (design §5, §7).

A contract is a set of single-author facts. `join` is commutative, associative and idempotent,
and `status_of` is a pure function of the set: so nodes that hold the same facts, learnt in any
order, agree on the status.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

import orjson

from schemas.contract import ContractStatus, ContractType, ResponseAction
from schemas.facts import (
    Fact,
    ImplementationFact,
    ReceiptFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
    json_of,
)
from schemas.verification import PartyRole
from server.domain.canonical import MAX_DEPTH, canonical
from server.domain.errors import Refusal
from server.domain.proof import (
    ProofGround,
    Side,
    ground_of,
    standing_failures,
    started_at,
    unproven,
)
from server.domain.sides import roles_of

FactKey = tuple[str, str]
Facts = Mapping[FactKey, Fact]
"""Facts of one contract by (kind, key), with one winner for each."""

Statement = TypeVar("Statement", ResponseFact, ImplementationFact, VerificationFact, ReceiptFact)

# --- the join -----------------------------------------------------------------------------------


def winner(first: Fact, second: Fact) -> Fact:
    """The one of two facts with the same key that stays (design §7, the table)."""
    if isinstance(first, VersionFact):
        return min(first, second, key=_order)
    if isinstance(first, RoundFact):
        return max(first, second, key=lambda fact: (cast(RoundFact, fact).number, _order(fact)))
    if isinstance(first, ReceiptFact):
        return _latest_run(first, cast(ReceiptFact, second))
    return max(first, second, key=_order)


def _latest_run(first: ReceiptFact, second: ReceiptFact) -> ReceiptFact:
    """The later of two runs of one runner, by its own clock: a receipt that is recorded again can't
    replace what the runner found since. Of one receipt that two nodes recorded, the first record
    stays."""
    ran, again = (
        (started_at(fact), canonical(fact.receipt, depth=MAX_DEPTH)) for fact in (first, second)
    )
    if ran == again:
        return min(first, second, key=_order)
    return first if ran > again else second


def _order(fact: Fact) -> tuple[int, bytes]:
    # Equal stamps are ordered by the canonical text, the same on every node: members may have
    # changed their order on the way.
    text = json_of(fact)
    try:
        return fact.stamp, canonical(orjson.loads(text), depth=MAX_DEPTH + 1)
    except Refusal:
        # An earlier release accepted facts that have no canonical form.
        return fact.stamp, text


def join(facts: Facts, more: Iterable[Fact]) -> dict[FactKey, Fact]:
    """The union of both, with one winner for each key. Never deletes a key."""
    joined = dict(facts)
    for fact in more:
        at = (fact.kind, fact.key)
        known = joined.get(at)
        joined[at] = fact if known is None or known == fact else winner(known, fact)
    return joined


# --- what follows from the facts ----------------------------------------------------------------


def versions_of(facts: Facts) -> list[VersionFact]:
    """Every content that was ever a version, ordered by (version, stamp, digest), the current one
    last.

    Versions with the same content may bind different parties; only the earliest is returned. The
    others stay facts: later facts may follow on them (`lineage`), and they are conflicts.
    """
    versions = [fact for fact in facts.values() if isinstance(fact, VersionFact)]
    if len(versions) == 1:
        return versions
    shown: dict[str, VersionFact] = {}
    for fact in versions:
        known = shown.get(fact.place)
        if known is None or (fact.stamp, fact.key) < (known.stamp, known.key):
            shown[fact.place] = fact
    return sorted(shown.values(), key=_rank)


def current_of(facts: Facts) -> VersionFact:
    """The current version: the one with the largest (version, stamp, digest)."""
    return versions_of(facts)[-1]


def ancestors_of(facts: Facts) -> list[VersionFact]:
    """The versions from which the current one derives, oldest first.

    Foreign peers may skip numbers: a parent is the nearest lower version with the parent's digest.
    """
    versions = versions_of(facts)
    line = [versions[-1]]
    for fact in reversed(versions):
        if fact.version < line[-1].version and fact.digest == line[-1].parent:
            line.append(fact)
    return line[:0:-1]


def line_of(facts: Facts) -> list[VersionFact]:
    """The versions from which the current one derives, oldest first, and the current one."""
    return [*ancestors_of(facts), current_of(facts)]


def roles_in(
    type: ContractType, facts: Facts, version: VersionFact, repo_roles: Mapping[str, str]
) -> dict[str, PartyRole]:
    """The role of each party of a version. `repo_roles` has the role of each known repo."""
    first_author = line_of(facts)[0].repo_id
    return roles_of(type, version.parties, version.roles, repo_roles, first_author)


def conflicts_of(facts: Facts) -> list[VersionFact]:
    """Versions that lost a race: neither the current one nor its ancestors (design §7)."""
    versions = [fact for fact in facts.values() if isinstance(fact, VersionFact)]
    if len(versions) == 1:
        return []
    kept = {fact.key for fact in ancestors_of(facts)} | {current_of(facts).key}
    lost = [fact for fact in versions if fact.key not in kept]
    return sorted(lost, key=lambda fact: (*_rank(fact), fact.key))


def has_lost(before: Facts, facts: Facts) -> bool:
    """Whether a version has lost a race since `before`."""
    known = {fact.key for fact in conflicts_of(before)}
    return any(fact.key not in known for fact in conflicts_of(facts))


def round_of(facts: Facts, current: VersionFact) -> int:
    """The round of implementation of the current version; the first is 1."""
    fact = facts.get(("round", current.place))
    return fact.number if isinstance(fact, RoundFact) else 1


def status_of(facts: Facts) -> ContractStatus:
    """The contract's status, from the facts about its current version and round (design §7)."""
    if len(facts) == 1:
        # Its first version, to which nobody has responded.
        return "proposed"
    current = current_of(facts)
    responses = list(facts_about(facts, current, ResponseFact))
    if any(response.action == "request_change" for response in responses):
        return "negotiating"
    if any(fact.action == "reject" and fact.repo_id in current.parties for fact in responses):
        return "proposed"
    if not _agreed(current, responses):
        return "proposed"
    number = round_of(facts, current)
    asks_proof = asks_for_receipts(facts, current)
    if not asks_proof and any(
        fact.round == number and fact.result == "success" and fact.repo_id in current.parties
        for fact in facts_about(facts, current, VerificationFact)
    ):
        return "verified"
    complete = {
        fact.repo_id
        for fact in facts_about(facts, current, ImplementationFact)
        if fact.round == number and fact.status == "complete"
    }
    if not complete.issuperset(current.parties):
        return "agreed"
    return "verified" if asks_proof and not unproven_sides(facts) else "implemented"


def asks_for_receipts(facts: Facts, current: VersionFact) -> bool:
    """Whether receipts verify the current version, rather than an agent's word."""
    return any(
        isinstance(fact, VersionFact)
        and fact.verification not in (None, "word")
        and fact.place == current.place
        for fact in facts.values()
    )


def ground_for_receipts(facts: Facts, roles: Mapping[str, PartyRole] | None = None) -> ProofGround:
    """What receipts are held against. `roles` are for a version that freezes none."""
    current = current_of(facts)
    others = [
        fact
        for fact in facts.values()
        if isinstance(fact, VersionFact) and fact.place == current.place and fact != current
    ]
    works = facts_about(facts, current, ImplementationFact)
    return ground_of([current, *others], round_of(facts, current), works, roles)


def unproven_sides(facts: Facts) -> list[Side]:
    """The sides of the current version of which receipts are asked and lacking."""
    receipts = facts_about(facts, current_of(facts), ReceiptFact)
    return unproven(ground_for_receipts(facts), receipts)


def failures_of(facts: Facts) -> dict[Side, ReceiptFact]:
    """The sides of the current version that a runner's receipt stands against."""
    receipts = facts_about(facts, current_of(facts), ReceiptFact)
    return standing_failures(ground_for_receipts(facts), receipts)


def others_of(version: VersionFact) -> frozenset[str]:
    """The parties whose agreement counts: all except the author, or the author when it is the only
    one."""
    others = frozenset(version.parties) - {version.repo_id}
    return others or frozenset({version.repo_id})


def implementations_of(facts: Facts) -> list[ImplementationFact]:
    """Each repo's latest work on the current version; work of an older round needs revision."""
    current = current_of(facts)
    number = round_of(facts, current)
    latest: dict[str, ImplementationFact] = {}
    for fact in facts_about(facts, current, ImplementationFact):
        known = latest.get(fact.repo_id)
        if known is None or fact.round > known.round:
            latest[fact.repo_id] = fact
    return [
        fact if fact.round == number else replace(fact, status="needs_revision")
        for fact in sorted(latest.values(), key=lambda fact: fact.repo_id)
    ]


def updated_at(facts: Facts) -> int:
    """The largest stamp among the facts (design §7)."""
    return max(fact.stamp for fact in facts.values())


def _rank(fact: VersionFact) -> tuple[int, int, str]:
    return fact.version, fact.stamp, fact.digest


def facts_about(facts: Facts, version: VersionFact, kind: type[Statement]) -> Iterator[Statement]:
    """The facts of one kind about a version."""
    for fact in facts.values():
        if (
            isinstance(fact, kind)
            and fact.version == version.version
            and fact.digest == version.digest
        ):
            yield fact


def _agreed(version: VersionFact, responses: list[ResponseFact]) -> bool:
    agreeing = {response.repo_id for response in responses if response.action == "agree"}
    needed = others_of(version)
    if version.policy == "all":
        return agreeing.issuperset(needed)
    return not agreeing.isdisjoint(needed)


def last_agreed(facts: Facts) -> VersionFact | None:
    """The latest version that was agreed: of the current one and its ancestors."""
    for version in reversed(line_of(facts)):
        if _agreed(version, list(facts_about(facts, version, ResponseFact))):
            return version
    return None


def is_open_to_all(facts: Facts, current: VersionFact, action: ResponseAction, repo: str) -> bool:
    """Whether a repo may respond so without being a party: to request a change, or withdraw that
    request by agreeing."""
    return action == "request_change" or (action == "agree" and has_asked(facts, current, repo))


def has_asked(facts: Facts, current: VersionFact, repo_id: str) -> bool:
    """Whether a repo's response to the current version is a request for a change."""
    return any(
        (fact.repo_id, fact.action) == (repo_id, "request_change")
        for fact in facts_about(facts, current, ResponseFact)
    )
