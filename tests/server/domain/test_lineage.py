"""What follows on what is known, in whatever order and pieces it comes (design §7)."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.base import ORDINAL_MAX
from schemas.facts import Fact, ImplementationFact, RoundFact, VerificationFact, VersionFact
from server.domain import contract
from server.domain import contract_steps as steps
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.domain.contract_steps import Party
from server.domain.identifiers import begun_by
from server.domain.lineage import (
    VERSION_JUMP_MAX,
    ContractRef,
    Followed,
    Sent,
    author_of,
    follow,
    is_news,
)
from tests.server.domain.histories import API, CONTENTS, IOS, WEB, histories, propose
from tests.server.domain.story import story_in
from tests.support.growth import grows_linearly

CONTRACT = ContractRef("p", begun_by(API.agent_id, "p", UUID(int=7)))
"""Begun by API's node."""
UNNAMED = ContractRef("p", "019370a0-0000-7000-8000-000000000000")
"""Of a release whose ids name nobody."""
RELAY = "aid://example.com/relay@1.0.0"
"""A node that has heard what others did."""


def sent_by_own(fact: Fact) -> Sent:
    return Sent(fact, author_of(fact) or RELAY)


def sort(facts: Facts, *sent: Fact, is_own: bool = True, of: ContractRef = CONTRACT) -> Followed:
    return follow(of, facts, [sent_by_own(one) if is_own else Sent(one, RELAY) for one in sent])


def next_version(facts: Facts, who: Party = API, **more: Any) -> VersionFact:
    current = contract.current_of(facts)
    made = replace(
        current,
        version=current.version + 1,
        parent=current.digest,
        repo_id=who.repo_id,
        agent_id=who.agent_id,
        content={"n": current.version},
        digest=digest({"n": current.version}),
        stamp=current.stamp + 1,
    )
    return replace(made, **more)


@settings(max_examples=60, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_honest_facts_are_all_taken_in_any_order_and_pieces(
    held: list[dict[contract.FactKey, Fact]], chance: random.Random
) -> None:
    for whole in held:
        coming = list(whole.values())
        chance.shuffle(coming)
        known: Facts = {}
        waiting: list[Fact] = []
        while coming:
            size = chance.randint(1, len(coming))
            piece, coming = coming[:size], coming[size:]
            news = [one for one in [*waiting, *piece] if is_news(known, one)]
            found = sort(known, *news)
            assert found.refused == []
            known = contract.join(known, found.taken)
            waiting = [fact for fact, _ in found.waiting]
        assert waiting == []
        assert known == whole


@pytest.mark.parametrize("number", [3, 1_000, ORDINAL_MAX])
def test_a_round_that_jumps_waits(number: int) -> None:
    facts = story_in("implemented").facts
    current = contract.current_of(facts)
    place: dict[str, Any] = {"version": current.version, "digest": current.digest, "stamp": 99}
    opened = RoundFact(**place, number=number)
    failed = VerificationFact(
        **place, repo_id="web", agent_id=WEB.agent_id, round=number - 1, result="failure"
    )
    work = ImplementationFact(
        **place, repo_id="web", agent_id=WEB.agent_id, round=number, status="in_progress"
    )
    found = sort(facts, opened, failed, work)
    assert found.taken == []
    assert "failed verification of round 1" in found.waiting[0][1]
    first = replace(failed, round=1)
    assert sort(facts, opened, failed, first).taken == [first] + (
        [failed, opened] if number == 3 else []
    )


def test_a_version_that_jumps_waits() -> None:
    facts = propose(API, WEB)
    for version in (3, ORDINAL_MAX):
        ahead = next_version(facts, version=version)
        found = sort(facts, ahead)
        assert (found.taken, found.refused) == ([], [])
        assert f"follows on version {version - 1}" in found.waiting[0][1]
    second = next_version(facts)
    third = next_version(contract.join(facts, [second]))
    assert sort(facts, third, second).taken == [second, third]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"repo_id": "ios"}, "not a party to version 1"),
        ({"repo_id": "ios", "parties": ("ios",)}, "not a party to version 1"),
        ({"parties": ("api",)}, "leaves out a party"),
        ({"parent": None}, "begins with version 1"),
        ({"version": 1}, "begins with version 1"),
    ],
)
def test_what_a_version_may_never_be(changes: dict[str, Any], said: str) -> None:
    facts = propose(API, WEB)
    [(_, reason)] = sort(facts, next_version(facts, **changes)).refused
    assert said in reason


def test_only_the_node_that_the_id_names_begins_a_contract() -> None:
    first = next(iter(propose(API, WEB).values()))
    assert sort({}, first).taken == [first]
    elsewhere = ContractRef("another", CONTRACT.contract_id)
    for facts in ({}, propose(API, WEB)):
        for content in CONTENTS[:2]:
            other = next(iter(propose(IOS, content=content, stamp=0).values()))
            [(_, reason)] = sort(facts, other).refused
            assert "another node began the contract" in reason
            assert sort(facts, other, is_own=False).taken == []
        assert sort(facts, first, of=elsewhere).taken == []


def test_an_agent_of_a_node_begins_a_contract_by_that_node() -> None:
    first = next(iter(propose(WEB, API).values()))
    assert follow(CONTRACT, {}, [Sent(first, API.agent_id)]).taken == [first]
    assert follow(CONTRACT, {}, [Sent(first, RELAY)]).taken == []


def test_where_the_id_names_nobody_the_first_to_come_begins_it() -> None:
    facts = propose(API, WEB)
    for content in CONTENTS[:2]:
        other = next(iter(propose(IOS, content=content, stamp=0).values()))
        [(_, reason)] = sort(facts, other, of=UNNAMED).waiting
        assert "has another first version" in reason
        assert sort({}, other, of=UNNAMED).taken == [other]


def test_of_versions_with_one_content_any_will_do() -> None:
    """Who it binds may go on; who none binds may not, and what comes later may bind it."""
    facts = propose(API, WEB)
    second = next_version(facts, parties=("api", "web"))
    other = replace(second, parties=("api", "ios", "web"), stamp=second.stamp + 1)
    third = next_version(contract.join(facts, [other]), IOS)
    failed = VerificationFact(
        version=2,
        digest=second.digest,
        stamp=99,
        repo_id="ios",
        agent_id=IOS.agent_id,
        round=1,
        result="failure",
    )
    opened = RoundFact(version=2, digest=second.digest, stamp=99, number=2)
    later: list[Fact] = [third, failed, opened]
    known = contract.join(facts, [second])
    found = sort(known, *later)
    assert [fact for fact, _ in found.refused] == [third, failed]
    assert [fact for fact, _ in found.waiting] == [opened]
    for before in (known, contract.join(facts, [other])):
        found = sort(before, *later, second, other)
        assert (found.refused, found.waiting) == ([], [])
        joined = contract.join(before, found.taken)
        assert joined == contract.join(facts, [second, other, *later])
        assert contract.versions_of(joined) == [*facts.values(), second, third]


def test_who_is_no_party_does_no_work() -> None:
    facts = story_in("agreed").facts
    current = contract.current_of(facts)
    place: dict[str, Any] = {"version": current.version, "digest": current.digest, "stamp": 99}
    author: dict[str, Any] = {"repo_id": "ios", "agent_id": IOS.agent_id, "round": 1}
    work = ImplementationFact(**place, **author, status="complete")
    verified = VerificationFact(**place, **author, result="failure")
    opened = RoundFact(**place, number=2)
    found = sort(facts, work, verified, opened)
    assert [fact for fact, _ in found.refused] == [work, verified]
    assert [fact for fact, _ in found.waiting] == [opened]
    asked = steps.respond(facts, IOS, "request_change", 100)
    assert sort(facts, asked).taken == [asked]
    assert [fact for fact, _ in sort({}, asked).waiting] == [asked]


def test_what_a_node_has_heard_may_skip_versions() -> None:
    """A foreign peer may have made some while it was away."""
    facts = propose(API, WEB)
    for version, taken in ((VERSION_JUMP_MAX + 1, True), (VERSION_JUMP_MAX + 2, False)):
        skipped = next_version(facts, WEB, version=version)
        assert bool(sort(facts, skipped, is_own=False).taken) is taken
    assert sort(facts, next_version(facts, IOS), is_own=False).taken == []
    begun = next_version(facts, version=7, parent=None)
    assert sort({}, begun, is_own=False, of=UNNAMED).taken == [begun]
    assert sort({}, begun, is_own=False).taken == []
    assert sort({}, replace(begun, version=1_001), is_own=False, of=UNNAMED).taken == []


def heard_in_turn(size: int) -> Followed:
    """Versions, each of which binds the repo that wrote the one below it."""
    first = next(iter(propose(API, WEB).values()))
    assert isinstance(first, VersionFact)
    made = [
        replace(first, version=n, repo_id=f"r{n}", parties=(f"r{n - 1}",)) for n in range(1, size)
    ]
    start = replace(first, version=size, parties=(f"r{size - 1}",))
    return sort({(start.kind, start.key): start}, *made, is_own=False)


def rounds_in_turn(size: int) -> Followed:
    facts = propose(API, WEB)
    current = contract.current_of(facts)
    failures = [
        VerificationFact(
            version=current.version,
            digest=current.digest,
            stamp=99,
            repo_id="web",
            agent_id=WEB.agent_id,
            round=number,
            result="failure",
        )
        for number in range(1, size)
    ]
    return sort(facts, *failures)


@pytest.mark.parametrize("run", [heard_in_turn, rounds_in_turn])
def test_what_follows_one_on_the_other_is_taken_at_the_cost_of_each(
    run: Callable[[int], Followed],
) -> None:
    """A member that sends many in the worst order has the node work no longer for each."""
    assert len(run(200).taken) == 199
    assert grows_linearly(run, 200)
