"""The balance of writes, and the judgement of streams."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replicas.account import ChangeRow, balance, check_changes, check_stream


def change(seq: int, at: int | None = None, outcome: str = "agreed") -> ChangeRow:
    stamp = f"{seq if at is None else at:06d}"
    return ChangeRow(seq, stamp, "agent", "call", "contract", f"c{seq}", outcome)


TABLE = [change(seq) for seq in (1, 2, 4, 5, 7)]


def test_what_was_acknowledged_must_be_there_once() -> None:
    assert balance({"a", "b"}, {"c"}, ["a", "b"]).is_even
    assert balance({"a", "b"}, {"c"}, ["a", "b", "c"]).is_even
    assert balance({"a", "b"}, (), ["a"]).lost == ["b"]
    assert balance({"a"}, (), ["a", "a"]).doubled == ["a"]
    assert balance((), {"c"}, ["c", "c"]).doubled == ["c"]
    assert balance({"a"}, {"c"}, ["a", "refused"]).unasked == ["refused"]


def test_stamps_grow_with_the_sequence() -> None:
    assert check_changes(TABLE) == []
    assert check_changes([change(1, at=9), change(2, at=9)]) == []
    assert len(check_changes([change(1, at=9), change(2, at=8)])) == 1


@given(st.integers(0, 7), st.integers(0, 5))
def test_a_reader_may_begin_and_end_anywhere(after: int, count: int) -> None:
    events = [event for event in TABLE if event.seq > after][:count]
    assert check_stream(events, TABLE, after) == []


@dataclass(frozen=True)
class Fault:
    sequence: tuple[int, ...]
    problem: str


@pytest.mark.parametrize(
    "fault",
    [
        Fault((1, 2, 5), "change 4 was skipped"),
        Fault((2, 4, 5), "change 1 was skipped"),
        Fault((1, 2, 2, 4), "change 2 came twice"),
        Fault((1, 4, 2, 5), "change 2 came after 4"),
        Fault((1, 2, 3, 4), "change 3 is not stored"),
    ],
    ids=str,
)
def test_each_fault_of_a_stream_is_seen(fault: Fault) -> None:
    events = [change(seq) for seq in fault.sequence]
    [problem] = check_stream(events, TABLE)
    assert problem.startswith(fault.problem)


def test_what_a_reader_was_sent_is_what_is_stored() -> None:
    [problem] = check_stream([change(1, outcome="proposed")], TABLE)
    assert problem.startswith("change 1 was")


@given(st.permutations([change(seq) for seq in (1, 2, 4, 5, 7)]))
def test_only_one_order_of_all_changes_passes(events: list[ChangeRow]) -> None:
    assert (check_stream(events, TABLE) == []) == (events == TABLE)
