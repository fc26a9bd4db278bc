"""Claims and registers end the same on every node (design §5, §6)."""

from hypothesis import given
from hypothesis import strategies as st

from server.domain.agents import identity
from server.domain.registers import Claim, later, settle

CLAIMS = st.lists(
    st.builds(
        Claim,
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
    ours: list[Claim], theirs: list[Claim]
) -> None:
    assert settle([*ours, *theirs]) == settle([*theirs, *ours])
    assert settle([*settle(ours), *settle(theirs)]) == settle([*ours, *theirs])
    assert settle(settle(ours)) == settle(ours)


@given(CLAIMS)
def test_no_agents_claim_is_forgotten_and_the_earliest_holds(claims: list[Claim]) -> None:
    settled = settle(claims)
    assert {identity(one.agent_id) for one in settled} == {identity(one.agent_id) for one in claims}
    assert [one.claimed_at for one in settled] == sorted(one.claimed_at for one in settled)


def test_joining_again_keeps_the_place() -> None:
    first = Claim("aid://x/a@1", None, 1, 1)
    again = first._replace(agent_endpoint="http://new", renewed_at=9)
    assert settle([first, Claim("peer-7", None, 5, 5), again])[0] == again


@given(VALUES, VALUES)
def test_of_two_values_one_stays(one: tuple[int, str, str], other: tuple[int, str, str]) -> None:
    assert later(one, other) + later(other, one) == (one != other)
    if other[0] > one[0]:
        assert later(one, other)
