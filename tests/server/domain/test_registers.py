"""Claims and registers end the same on every node (design §5, §7)."""

from itertools import permutations
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from server.domain.agents import identity
from server.domain.identifiers import founded_by
from server.domain.registers import (
    ClaimRelease,
    RepoClaim,
    StatedRelease,
    Weight,
    gives_way,
    is_released,
    later,
    may_release,
    releases_that_count,
    settle,
    weight_on_repo,
)

CLAIMS = st.lists(
    st.builds(
        RepoClaim,
        agent_id=st.sampled_from(["aid://x/a@1", "aid://x/a@2", "aid://x/b@1", "peer-7"]),
        agent_endpoint=st.none() | st.just("http://a"),
        claimed_at=st.integers(1, 4),
        renewed_at=st.integers(1, 4),
        signature=st.none(),
    ),
    max_size=8,
)
VALUES = st.tuples(st.integers(1, 3), st.text(max_size=2), st.text(max_size=1))


@given(CLAIMS, CLAIMS)
def test_claims_settle_alike_in_any_order_and_any_number_of_times(
    ours: list[RepoClaim], theirs: list[RepoClaim]
) -> None:
    assert settle([*ours, *theirs]) == settle([*theirs, *ours])
    assert settle([*settle(ours), *settle(theirs)]) == settle([*ours, *theirs])
    assert settle(settle(ours)) == settle(ours)


@given(CLAIMS)
def test_no_agents_claim_is_forgotten_and_the_earliest_holds(claims: list[RepoClaim]) -> None:
    settled = settle(claims)
    assert {identity(one.agent_id) for one in settled} == {identity(one.agent_id) for one in claims}
    assert [one.claimed_at for one in settled] == sorted(one.claimed_at for one in settled)


def test_joining_again_keeps_the_place() -> None:
    first = RepoClaim("aid://x/a@1", None, 1, 1)
    again = first._replace(agent_endpoint="http://new", renewed_at=9)
    assert settle([first, RepoClaim("peer-7", None, 5, 5), again])[0] == again


SIGNERS = ("aid://x/h", "aid://x/m", "aid://x/o")
SIGNATURES = {node: None if node == SIGNERS[2] else f'{{"node":"{node}@1"}}' for node in SIGNERS}
"""As the third of them keeps the signatures of all."""
PLAIN = str(UUID(int=0))
RELEASES = st.lists(
    st.builds(
        ClaimRelease,
        agent_id=st.sampled_from(["aid://x/a", "aid://x/b", "peer-7"]),
        by=st.sampled_from(["op", "ana"]),
        released_at=st.integers(0, 5),
        signature=st.none(),
    ),
    max_size=5,
)
STATED = st.lists(
    st.builds(
        lambda node, agent, at: StatedRelease(
            node, ClaimRelease(agent, "op", at, SIGNATURES[node])
        ),
        st.sampled_from(SIGNERS),
        st.sampled_from(["aid://x/a", "aid://x/b", "peer-7"]),
        st.integers(0, 5),
    ),
    max_size=5,
)


def counted(claims: list[RepoClaim], releases: list[ClaimRelease]) -> dict[str, ClaimRelease]:
    """The releases of this node, which signed all claims too."""
    return releases_that_count(PLAIN, claims, [StatedRelease(SIGNERS[2], one) for one in releases])


@given(CLAIMS, CLAIMS, RELEASES, RELEASES)
def test_releases_join_alike_in_any_order_and_with_late_claims(
    ours: list[RepoClaim],
    theirs: list[RepoClaim],
    some: list[ClaimRelease],
    more: list[ClaimRelease],
) -> None:
    every = [*ours, *theirs]
    ended = counted(every, [*some, *more])
    assert ended == counted([*theirs, *ours], [*more, *some])
    assert ended == counted(every, [*counted(every, some).values(), *more, *more])
    final = settle(every, ended)
    first = settle(ours, counted(ours, some))
    assert settle([*first, *theirs], ended) == final
    assert settle([*theirs, *settle(ours)], ended) == final
    assert set(final) == set(settle([*ours, *theirs])), "no claim is forgotten"


@given(CLAIMS, STATED, st.sampled_from(SIGNERS))
def test_a_release_counts_only_of_who_signed_the_claim_that_counts(
    claims: list[RepoClaim], stated: list[StatedRelease], node: str
) -> None:
    signed = [claim._replace(signature=SIGNATURES[node]) for claim in claims]
    counting = releases_that_count(PLAIN, signed, stated)
    assert all(release.signature == SIGNATURES[node] for release in counting.values())
    assert counting == releases_that_count(PLAIN, signed[::-1], stated[::-1])
    claimed = {identity(claim.agent_id) for claim in claims}
    assert set(counting) == {
        release.agent_id for by, release in stated if by == node and release.agent_id in claimed
    }


@given(CLAIMS, RELEASES)
def test_who_was_released_holds_nothing_until_it_claims_anew(
    claims: list[RepoClaim], releases: list[ClaimRelease]
) -> None:
    ended = counted(claims, releases)
    settled = settle(claims, ended)
    held = [claim for claim in settled if not is_released(claim, ended)]
    assert settled[: len(held)] == held
    assert [claim.claimed_at for claim in held] == sorted(claim.claimed_at for claim in held)
    for claim in settled:
        renewed = claim._replace(renewed_at=99)
        assert is_released(renewed, ended) == is_released(claim, ended), "a renewal is not a claim"
        again = claim._replace(claimed_at=99, renewed_at=99)
        assert not is_released(again, ended)


def test_who_may_release_a_claim() -> None:
    """The node through which it was made, and the one that created the project."""
    assert may_release(PROJECT, FOUNDER, HOLDER)
    assert may_release(PROJECT, HOLDER, HOLDER)
    assert not may_release(PROJECT, MEMBER, HOLDER)
    assert not may_release(PROJECT, MEMBER, None)


@given(VALUES, VALUES)
def test_of_two_values_one_stays(one: tuple[int, str, str], other: tuple[int, str, str]) -> None:
    assert later(one, other) + later(other, one) == (one != other)
    if other[0] > one[0]:
        assert later(one, other)


# --- what a repo is -------------------------------------------------------------------------------

FOUNDER, HOLDER, MEMBER, OTHER = (f"aid://x/{name}@1" for name in ("f", "h", "m", "o"))
PROJECT = founded_by(FOUNDER, UUID("0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b"))


class Held(NamedTuple):
    """A repo as a node holds it: who has claimed it, by the node that signed, and what it is."""

    claims: tuple[RepoClaim, ...]
    node: str | None
    body: dict[str, Any]


BODIES = st.builds(lambda stamp, role: {"stamp": stamp, "role": role}, st.integers(1, 3), st.text())
NODES = st.sampled_from([FOUNDER, HOLDER, MEMBER, OTHER])
CLAIM = st.builds(
    lambda node, at: RepoClaim(node, None, at, at, node),
    st.sampled_from([HOLDER, MEMBER, OTHER]),
    st.integers(1, 3),
)
HELD = st.builds(Held, st.lists(CLAIM, max_size=2).map(tuple), st.none() | NODES, BODIES)


def weight(claims: list[RepoClaim], node: str | None) -> Weight:
    holder = claims[0].signature if claims else None
    return weight_on_repo(PROJECT, node, holder, [str(one.signature) for one in claims])


def joined(ours: Held, theirs: Held) -> Held:
    """What a node holds after it was told of what another holds."""
    claims = settle([*ours.claims, *theirs.claims])
    weights = weight(claims, ours.node), weight(claims, theirs.node)
    kept = theirs if gives_way(ours.body, theirs.body, weights) else ours
    return Held(tuple(claims), kept.node, kept.body)


def test_of_what_a_repo_is_the_founders_word_counts_most_then_the_holders() -> None:
    claims = settle([RepoClaim(HOLDER, None, 1, 1, HOLDER), RepoClaim(MEMBER, None, 2, 2, MEMBER)])
    found = [weight(claims, node) for node in (None, OTHER, MEMBER, HOLDER, FOUNDER)]
    assert found == [Weight.OTHERS, *Weight]
    early, late = {"stamp": 1, "role": "a"}, {"stamp": 9, "role": "b"}
    assert gives_way(early, late, (Weight.MEMBER, Weight.HOLDER)), "dating it back gains nothing"
    assert not gives_way(early, late, (Weight.HOLDER, Weight.HOLDER))


@given(st.lists(CLAIM, max_size=3), st.lists(st.tuples(NODES, BODIES), min_size=1, max_size=4))
def test_of_words_that_come_in_any_order_the_same_stays(
    claims: list[RepoClaim], words: list[tuple[str, dict[str, Any]]]
) -> None:
    ends = []
    for order in permutations(words):
        held = Held(tuple(settle(claims)), None, {"stamp": 10, "role": ""})
        for node, body in order:
            held = joined(held, Held((), node, body))
        ends.append(held.body)
    assert all(end == ends[0] for end in ends)


@given(st.lists(HELD, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_nodes_that_tell_each_other_what_they_hold_end_equal(
    nodes: list[Held], chance: Any
) -> None:
    """Though claims come meanwhile, and with them whose word counts."""
    pairs = [(one, other) for one in range(len(nodes)) for other in range(len(nodes))]
    for _ in range(6):
        chance.shuffle(pairs)
        for one, other in pairs:
            nodes[one] = joined(nodes[one], nodes[other])
    assert all((node.claims, node.body) == (nodes[0].claims, nodes[0].body) for node in nodes)
