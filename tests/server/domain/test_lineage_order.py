"""Whatever is sent, in whatever order and pieces: all nodes take the same (design §7)."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import Fact, ImplementationFact, RoundFact, VerificationFact, VersionFact
from server.domain import contract
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.domain.errors import Refusal
from server.domain.lineage import Sent, follow, is_news
from tests.server.domain.histories import (
    API,
    CONTENTS,
    IOS,
    WEB,
    Step,
    facts_of,
    others,
    propose,
)
from tests.server.domain.test_lineage import CONTRACT, RELAY, sent_by_own

MALLORY = "aid://example.com/mallory@1.0.0"
BOUND = [("api", "web"), ("api", "ios", "web"), ("api", "out", "web"), ("api", "web", "zed")]
DIGESTS = [digest(content) for content in CONTENTS]


def hostile_versions() -> st.SearchStrategy[VersionFact]:
    """Of few contents, by whoever, with whichever parties."""
    contents = dict(zip(DIGESTS, CONTENTS, strict=True))
    return st.builds(
        VersionFact,
        version=st.integers(1, 4),
        digest=st.sampled_from(DIGESTS[:2]),
        stamp=st.integers(1, 40),
        content=st.just(CONTENTS[0]),
        repo_id=st.sampled_from(["api", "web", "ios", "out", "zed"]),
        agent_id=st.just(MALLORY),
        parties=st.sampled_from(BOUND),
        policy=st.sampled_from(["any", "all"]),
        parent=st.none() | st.sampled_from(DIGESTS[:2]),
    ).map(lambda fact: replace(fact, content=contents[fact.digest]))


def aimed() -> st.SearchStrategy[Fact]:
    """A second version of one content for different parties, and what some of these say of it."""
    first = next(iter(propose(API, WEB).values()))
    assert isinstance(first, VersionFact)
    second = replace(
        first,
        version=2,
        digest=DIGESTS[1],
        content=CONTENTS[1],
        repo_id="web",
        agent_id=MALLORY,
        parent=DIGESTS[0],
    )
    pool: list[Fact] = [
        replace(second, parties=parties, stamp=50 + place) for place, parties in enumerate(BOUND)
    ]
    at: dict[str, Any] = {"version": 2, "digest": DIGESTS[1], "stamp": 60}
    for repo in ("out", "ios"):
        by: dict[str, Any] = {"repo_id": repo, "agent_id": MALLORY, "round": 1}
        parties = ("api", repo, "web")
        pool += [
            replace(second, version=3, parent=DIGESTS[1], repo_id=repo, parties=parties, stamp=61),
            ImplementationFact(**at, **by, status="complete"),
            VerificationFact(**at, **by, result="failure"),
        ]
    return st.sampled_from([*pool, RoundFact(**at, number=2)])


def hostile() -> st.SearchStrategy[list[Sent]]:
    wild = hostile_versions() | others(["web", "ios", "out", "zed"])
    said = st.lists(aimed().map(sent_by_own), max_size=8)
    return st.builds(
        lambda one, other: [*one, *other],
        said,
        st.lists(st.builds(Sent, wild, st.sampled_from([RELAY, MALLORY])), max_size=8),
    )


@st.composite
def honest(draw: st.DrawFn) -> list[Facts]:
    """What two nodes wrote apart: updates of one content with different parties among it."""
    held = [dict(propose(API, WEB)) for _ in range(2)]
    for stamp in range(10, 10 + draw(st.integers(0, 12))):
        node = draw(st.integers(0, 1))
        mine = held[node]
        if draw(st.booleans()):
            held[node] = contract.join(mine, held[1 - node].values())
            continue
        action = draw(st.sampled_from(["update", "update", "agree", "complete", "failure"]))
        who = draw(st.sampled_from([API, WEB, IOS]))
        step = Step(node, who, action, draw(st.sampled_from(CONTENTS[:2])))
        try:
            made = facts_of(mine, step, stamp)
        except Refusal:
            continue
        if draw(st.booleans()):
            made = [_with_ios(fact) for fact in made]
        held[node] = contract.join(mine, made)
    return [*held]


def _with_ios(fact: Fact) -> Fact:
    if not isinstance(fact, VersionFact):
        return fact
    return replace(fact, parties=tuple(sorted({*fact.parties, "ios"})))


class Member:
    """A node of a mesh: what it holds, who signed that, and what of it waits."""

    def __init__(self, held: Facts, chance: random.Random) -> None:
        self.held = held
        self._signed = {at: sent_by_own(fact) for at, fact in held.items()}
        self._waiting: list[Sent] = []
        self._chance = chance

    def take(self, sent: list[Sent]) -> None:
        """What waits is deferred, or dropped where too much is."""
        news = [one for one in [*self._waiting, *sent] if is_news(self.held, one.fact)]
        found = follow(CONTRACT, self.held, news)
        self.held = contract.join(self.held, found.taken)
        # One fact may come in two envelopes, of which only one lets it in.
        taken = {id(fact) for fact in found.taken}
        for one in news:
            at = (one.fact.kind, one.fact.key)
            if id(one.fact) in taken and self.held[at] == one.fact:
                self._signed[at] = one
        kept = {id(fact) for fact, _ in found.waiting if self._chance.random() < 0.8}
        self._waiting = [one for one in news if id(one.fact) in kept]

    def whole(self) -> list[Sent]:
        """What it tells another: all that it holds."""
        return [self._signed[at] for at in self.held]


ROUNDS = 10
"""Within how many rounds of comparing nodes are equal."""


def meshed(wrote: list[Facts], said: list[Sent], chance: random.Random) -> list[Facts]:
    """What two nodes that wrote apart, and a new one, hold once they have compared: before that,
    each piece of what a member says goes to some of them."""
    nodes = [Member(held, chance) for held in [*wrote, {}]]
    for piece in pieces([*said, *said], chance):
        for node in chance.sample(nodes, chance.randint(1, 3)):
            node.take(piece)
        if chance.random() < 0.3:
            one, other = chance.sample(nodes, 2)
            one.take(other.whole())
    for _ in range(ROUNDS):
        for one, other in permutations(nodes, 2):
            one.take(other.whole())
    return [node.held for node in nodes]


def pieces(sent: list[Sent], chance: random.Random) -> Iterator[list[Sent]]:
    coming = list(sent)
    chance.shuffle(coming)
    while coming:
        size = chance.randint(1, min(len(coming), 6))
        yield coming[:size]
        coming = coming[size:]


def shown(facts: Facts) -> Any:
    return (
        contract.status_of(facts),
        contract.current_of(facts),
        contract.ancestors_of(facts),
        contract.conflicts_of(facts),
        contract.implementations_of(facts),
    )


def check_alike(wrote: list[Facts], said: list[Sent], chance: random.Random) -> None:
    first, *others = meshed(wrote, said, chance)
    for other in others:
        assert other == first
        assert shown(other) == shown(first)
    assert all(at in first for held in wrote for at in held)


@settings(max_examples=50, deadline=None)
@given(honest(), hostile(), st.randoms(use_true_random=False))
def test_all_nodes_take_the_same_of_any_facts(
    wrote: list[Facts], said: list[Sent], chance: random.Random
) -> None:
    check_alike(wrote, said, chance)


@pytest.mark.soak
@settings(max_examples=3_000, deadline=None)
@given(honest(), hostile(), st.randoms(use_true_random=False))
def test_all_nodes_take_the_same_for_long(
    wrote: list[Facts], said: list[Sent], chance: random.Random
) -> None:
    check_alike(wrote, said, chance)


@settings(max_examples=30, deadline=None)
@given(honest(), st.randoms(use_true_random=False))
def test_what_honest_nodes_wrote_is_taken_in_its_first_coming(
    wrote: list[Facts], chance: random.Random
) -> None:
    """By its senders: a contract comes whole, its versions first."""
    known: Facts = {}
    whole = contract.join(wrote[0], wrote[1].values())
    sent = [sent_by_own(fact) for fact in whole.values()]
    ordered = sorted(sent, key=lambda one: one.fact.kind != "version")
    while ordered:
        size = chance.randint(1, len(ordered))
        piece, ordered = ordered[:size], ordered[size:]
        found = follow(CONTRACT, known, piece)
        assert found.refused == []
        known = contract.join(known, found.taken)
    assert known == whole
