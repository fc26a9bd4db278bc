"""Bounds and order within a thread (acp-canonical §12.4, §12.5)."""

import pytest

from server.domain.acp.threads import Bounds, Thread, after, check_bounds, hop_of_joining, place
from server.domain.errors import Conflict, Forbidden, InvalidInput

BOUNDS = Bounds(hops=3, rounds=5)


def test_replies_to_replies_end() -> None:
    check_bounds(Thread(), 3, BOUNDS)
    with pytest.raises(Forbidden) as refused:
        check_bounds(Thread(), 4, BOUNDS)
    assert refused.value.data["reason"] == "hop_limit"


def test_who_joins_by_name_answers_what_is_there() -> None:
    """§12.4: leaving out reply_to is no way around the guard; to go on alone is no answer."""
    thread, hops = Thread(), []
    for sender in ("a", "a", "b", "b", "a"):
        hops.append(hop_of_joining(thread, sender))
        thread = after(thread, hops[-1], sender)
    assert hops == [0, 0, 1, 1, 2]
    assert thread == Thread(rounds=5, hop=2, speaker="a")
    assert after(thread, 1, "b").hop == 2, "an answer to an early message lowers nothing"
    assert hop_of_joining(Thread(rounds=3, hop=4), "a") == 5, "who spoke last is not known"


def test_one_message_uses_up_no_thread() -> None:
    """A node may say of its message what it likes; of a thread that is new here it alone knows."""
    assert after(Thread(rounds=3, hop=1), 64, "c").hop == 2
    assert after(Thread(), 30, "c").hop == 30


def test_a_thread_ends() -> None:
    check_bounds(Thread(rounds=4), 0, BOUNDS)
    with pytest.raises(Forbidden) as refused:
        check_bounds(Thread(rounds=5), 0, BOUNDS)
    assert refused.value.data["reason"] == "round_limit"


def test_a_sequence_goes_up_by_one() -> None:
    assert place("knowledge.push", None, Thread()) == "next"
    assert place("knowledge.push", 1, Thread()) == "next"
    assert place("knowledge.push", 4, Thread(sequence=2)) == "early"
    with pytest.raises(Conflict) as refused:
        place("knowledge.push", 2, Thread(sequence=2))
    assert refused.value.data == {"reason": "sequence_taken", "next": 3}


def test_negotiation_needs_a_sequence() -> None:
    with pytest.raises(InvalidInput):
        place("task.offer", None, Thread())
    assert place("position.state", 1, Thread()) == "next"
