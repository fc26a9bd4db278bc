"""What a session is shown: each entry once, and again when it was lost."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from server.domain.session_feed import (
    UNDER_WAY,
    FeedClaim,
    FeedEntry,
    ShownOnce,
    fitting,
    fresh,
    noted,
    standing,
)

ENTRIES = [FeedEntry(f"e{number}", number % 2 == 0) for number in range(5)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["shows", "stops", "loses"]),
        st.sets(st.sampled_from(ENTRIES), min_size=1),
        st.booleans(),
    ),
    max_size=20,
)


class Session:
    """A session that asks again and again, and the notes that a node keeps about it."""

    def __init__(self) -> None:
        self.now = 10 * UNDER_WAY
        self.received: int | None = 0
        self.notes: dict[str, ShownOnce] = {}

    def claim(self, entries: Any = ENTRIES, *, arrives: bool = True, **how: bool) -> list[str]:
        """The ids that a claim gives out; the next one comes later. `arrives`: the session gets
        the answer."""
        self.now += 2 * UNDER_WAY
        claim = FeedClaim(self.now, received=self.received, **how)
        known = standing(self.notes, claim)
        new = fresh(entries, known, claim)
        self.notes = known | noted(new, known, claim)
        if arrives and self.received is not None:
            self.received = self.now
        return [entry.id for entry in new]


@given(STEPS)
def test_what_arrives_is_shown_once_and_what_is_lost_again(steps: Any) -> None:
    session, seen, held = Session(), set[str](), set[str]()
    for step, entries, arrives in steps:
        if step == "loses":
            seen.clear()
            session.claim([], again=True)
            continue
        given_out = set(session.claim(sorted(entries), urgent=step == "stops", arrives=arrives))
        if step == "stops":
            assert given_out == {entry.id for entry in entries if entry.urgent} - held
            held |= given_out
        else:
            assert given_out == {entry.id for entry in entries} - seen
        seen |= given_out if arrives else set()
        seen -= set() if arrives else given_out


def test_an_answer_under_way_is_not_taken_for_lost() -> None:
    """The hooks of parallel tools ask at the same time, none of them with the other's receipt."""
    claim = FeedClaim(1_000 * UNDER_WAY, received=0)
    notes = noted(ENTRIES, {}, claim)
    beside = claim._replace(now=claim.now + UNDER_WAY - 1)
    assert fresh(ENTRIES, standing(notes, beside), beside) == []
    later = claim._replace(now=claim.now + UNDER_WAY)
    assert fresh(ENTRIES, standing(notes, later), later) == ENTRIES


def test_a_session_that_keeps_no_receipts_is_shown_all_once() -> None:
    session = Session()
    session.received = None
    assert session.claim(arrives=False) == [entry.id for entry in ENTRIES]
    assert session.claim() == []
    assert session.claim(again=True) == [entry.id for entry in ENTRIES]


def test_an_agent_that_was_held_is_not_held_again_after_it_forgot() -> None:
    session = Session()
    assert session.claim(urgent=True) == ["e0", "e2", "e4"]
    assert session.claim(again=True, urgent=True) == []
    assert session.claim() == [entry.id for entry in ENTRIES]
    assert session.claim(urgent=True) == []


def test_texts_fit_but_the_first_is_shown_in_any_case() -> None:
    assert fitting(["aaaa", "bb", "c"], 6, 9) == 2
    assert fitting(["aaaa", "bb"], 3, 9) == 1
    assert fitting(["a", "b", "c"], 9, 2) == 2
    assert fitting(["a"], 9, 0) == 0
    assert fitting([], 9, 9) == 0
