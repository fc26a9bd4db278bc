"""Whose a thread is, its bounds, and the order in it (acp-canonical §12.4, §12.5)."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.acp.threads import (
    Bounds,
    Candidate,
    Pending,
    Thread,
    ThreadParty,
    check_bounds,
    chosen,
    hop_of,
    is_alone,
    number_for,
    place,
    spoken,
    take,
    turn,
)
from server.domain.errors import Conflict, Forbidden, InvalidInput

BOUNDS = Bounds(hops=3, rounds=5)


# --- whose a thread is ----------------------------------------------------------------------


def choose(*found: Candidate, others: int = 1, alone: str | None = None) -> str | None:
    joined = chosen(found, "name", others, alone)
    return None if joined is None else joined.id


def test_a_name_belongs_to_those_who_share_a_thread_of_it() -> None:
    theirs = Candidate("m1", Thread(1), spoke=False, shared=0)
    ours = Candidate("m2", Thread(1), spoke=False, shared=1)
    both = Candidate("m3", Thread(1), spoke=True, shared=1)
    assert choose() is None
    assert choose(theirs) is None, "to have been written to binds nobody"
    assert choose(theirs, ours) == "m2"
    assert choose(ours, both) == "m3"
    assert choose(ours, ours._replace(id="m4")) == "m2", "the oldest"
    assert choose(theirs, others=0) == "m1", "for everyone"
    named_after_it = theirs._replace(id="name")
    assert choose(named_after_it) == "name"


def test_notes_to_oneself_are_in_a_thread_of_their_own() -> None:
    assert is_alone("a", ["a"])
    assert not any(is_alone("a", to) for to in (["b"], ["a", "b"], []))
    shared = Candidate("name", Thread(1), spoke=True, shared=1)
    notes = Candidate("m2", Thread(1, alone="a"), spoke=True, shared=0)
    assert choose(shared, notes, others=0, alone="a") == "m2"
    assert choose(shared, others=0, alone="a") is None
    assert choose(shared, notes) == "name"
    assert choose(notes) is None


# --- bounds ---------------------------------------------------------------------------------


class Talk:
    """The parties of a thread, as the node keeps them."""

    def __init__(self) -> None:
        self.parties: dict[str, ThreadParty] = {}

    def party(self, who: str) -> ThreadParty:
        return self.parties.get(who, ThreadParty())

    def say(self, who: str, *to: str, claimed: int = 0) -> int:
        """Its hop; `claimed` is what another node says that it is. Raises Forbidden."""
        party = self.party(who)
        hop = max(claimed, hop_of(party))
        check_bounds(party, hop, BOUNDS)
        self.parties[who] = spoken(party, hop)
        for one in to:
            if one != who:
                heard = self.party(one).heard_hop
                self.parties[one] = self.party(one)._replace(heard_hop=max(heard or 0, hop))
        return hop


def test_replies_to_replies_end() -> None:
    """§12.4: whether by reply_to or by the thread's name; to go on alone is no answer."""
    talk = Talk()
    said = ("ab", "ab", "ba", "ba", "ab", "ba")
    assert [talk.say(*pair) for pair in said] == [0, 0, 1, 1, 2, 3]
    with pytest.raises(Forbidden) as refused:
        talk.say("a", "b")
    assert refused.value.data["reason"] == "hop_limit"


def test_answers_side_by_side_are_one_reply() -> None:
    talk = Talk()
    talk.say("a", "b", "c")
    assert [talk.say("b", "a", "c"), talk.say("c", "a")] == [1, 1]
    assert talk.say("a", "b", "c") == 2


def test_a_ring_ends() -> None:
    """§12.4: each writes on to the next one, and no two answer each other."""
    talk, said = Talk(), 0
    with suppress(Forbidden):
        for said in range(100):
            talk.say("abc"[said % 3], "abc"[(said + 1) % 3])
    assert said < 12


def test_a_thread_ends() -> None:
    check_bounds(ThreadParty(sent=4), 0, BOUNDS)
    with pytest.raises(Forbidden) as refused:
        check_bounds(ThreadParty(sent=5), 0, BOUNDS)
    assert refused.value.data["reason"] == "round_limit"


def test_a_note_that_answers_a_note_is_a_reply() -> None:
    assert hop_of(ThreadParty(0, None, 1)) == 0
    assert hop_of(ThreadParty(0, None, 1), parent=0) == 1


AGENTS = st.sampled_from("abmno")


@given(
    st.lists(
        st.tuples(
            st.sampled_from("mno"),
            st.lists(st.sampled_from("mno"), max_size=3),
            st.integers(0, 2**53 - 1),
        ),
        max_size=80,
    )
)
def test_what_others_do_among_themselves_costs_a_pair_nothing(
    driven: list[tuple[str, list[str], int]],
) -> None:
    """§12.4: an honest pair's next message is taken, and its hop is as if nobody else were there,
    whatever a party or an outsider sends to itself or to others outside."""
    talk, alone, pair = Talk(), Talk(), ["ab", "ba", "ab", "ba"]
    for number, (who, to, claimed) in enumerate(driven):
        if number % 9 == 5 and pair:
            following = pair.pop(0)
            assert talk.say(*following) == alone.say(*following)
        with suppress(Forbidden):
            talk.say(who, *to, claimed=claimed)
    for following in pair:
        assert talk.say(*following) == alone.say(*following)


@given(
    st.lists(
        st.tuples(AGENTS, st.lists(AGENTS, max_size=3), st.integers(0, 2**53 - 1)), max_size=80
    )
)
def test_nobody_comes_to_a_bound_but_by_its_own_messages(
    said: list[tuple[str, list[str], int]],
) -> None:
    """§12.4: also when it is written to; so who is refused, and charged, drove the thread there."""
    talk = Talk()
    for who, to, claimed in said:
        mine = who in "ab"
        try:
            talk.say(who, *to, claimed=0 if mine else claimed)
        except Forbidden:
            if mine:
                assert 2 * talk.party(who).sent >= BOUNDS.hops


@given(st.lists(st.tuples(AGENTS, st.lists(AGENTS, min_size=1, max_size=4)), max_size=200))
def test_however_a_thread_is_answered_it_ends(said: list[tuple[str, list[str]]]) -> None:
    """§12.4: no agent sends more in it than is allowed."""
    talk = Talk()
    for who, to in said:
        with suppress(Forbidden):
            talk.say(who, *to)
    assert all(one.sent <= BOUNDS.rounds for one in talk.parties.values())
    assert all((one.own_hop or 0) <= BOUNDS.hops for one in talk.parties.values())


# --- order ----------------------------------------------------------------------------------


def quarantined(sequence: int, sender: str = "a") -> Pending:
    return Pending(f"{sender}{sequence}", sender, sequence, "quarantine")


def gated(sequence: int, sender: str = "a") -> Pending:
    return Pending(f"{sender}{sequence}g", sender, sequence, "gate")


def ended(sequence: int, sender: str = "a") -> Pending:
    return Pending(f"{sender}{sequence}e", sender, sequence, None)


def test_a_sequence_goes_up_by_one() -> None:
    assert place("knowledge.push", None, Thread(), ()) == "next"
    assert place("knowledge.push", 1, Thread(), ()) == "next"
    assert place("knowledge.push", 4, Thread(sequence=2), ()) == "early"
    for taken, pending in ((2, ()), (4, [quarantined(4)])):
        with pytest.raises(Conflict) as refused:
            place("knowledge.push", taken, Thread(sequence=2), pending)
        assert refused.value.data == {"reason": "sequence_taken", "next": 3}


def test_negotiation_needs_a_sequence() -> None:
    with pytest.raises(InvalidInput):
        place("task.offer", None, Thread(), ())
    assert place("position.state", 1, Thread(), ()) == "next"


def test_what_waits_for_a_human_takes_no_number() -> None:
    assert place("knowledge.push", 3, Thread(sequence=2), [gated(3), ended(3)]) == "next"


def test_what_waits_while_its_number_is_taken_gets_the_next() -> None:
    """§12.5: nobody ends what others have sent."""
    at = Thread(sequence=3)
    assert number_for(5, at, []) == 5
    assert number_for(2, at, [gated(4)]) == 4
    assert number_for(2, at, [quarantined(4), quarantined(5)]) == 6
    assert turn(at, [quarantined(2)]) == quarantined(2)._replace(sequence=4), "taken elsewhere"
    assert turn(at, [quarantined(2), quarantined(4)]) == quarantined(4)


def test_the_next_in_quarantine_has_its_turn() -> None:
    at = Thread(sequence=2)
    assert turn(at, []) is None
    assert turn(at, [quarantined(5), quarantined(3)]) == quarantined(3)
    assert turn(at, [quarantined(5)]) is None


def test_what_has_ended_holds_up_nothing_behind_it() -> None:
    at = Thread(sequence=2)
    assert turn(at, [ended(4), ended(3), quarantined(5)]) == quarantined(5)
    assert turn(at, [ended(3), quarantined(5)]) is None
    assert turn(at, [ended(3), gated(4), quarantined(5)]) is None, "its own gate"
    assert turn(at, [ended(3), gated(3, "b"), quarantined(4)]) == quarantined(4)
    assert turn(at, [ended(3, "b"), quarantined(4)]) is None, "3 is its sender's to say yet"
    assert turn(at, [quarantined(2**53 - 1)]) is None


def test_no_number_that_is_made_up_elsewhere_is_the_last() -> None:
    assert take(Thread(sequence=2), 4, BOUNDS).sequence == 4
    assert take(Thread(sequence=2), 1, BOUNDS).sequence == 2
    assert take(Thread(sequence=2), 2**53 - 1, BOUNDS).sequence == 7


STEPS: dict[str, Callable[["Conversation", str, int], None]] = {
    "send": lambda talk, who, number: talk.send(who, number, gate=False),
    "gate": lambda talk, who, number: talk.send(who, number, gate=True),
    "end": lambda talk, who, number: talk.end(number),
    "approve": lambda talk, who, number: talk.approve(number),
    "arrive": lambda talk, who, number: talk.arrive(number),
}


class Conversation:
    """A thread as the node keeps it, with what happens by itself after each step."""

    def __init__(self) -> None:
        self.thread = Thread()
        self.pending: list[Pending] = []
        self.delivered: list[int] = []
        self.let_through: set[str] = set()
        self.ended: set[str] = set()
        self.sent = 0

    def send(self, who: str, number: int, *, gate: bool) -> None:
        try:
            found = place("knowledge.push", number, self.thread, self.pending)
        except Conflict:
            return
        if gate or found == "early":
            held: Any = "gate" if gate else "quarantine"
            self.sent += 1
            self.pending.append(Pending(f"m{self.sent}", who, number, held))
        else:
            self.take(number)

    def end(self, at: int) -> None:
        """One that waits is refused, or expires."""
        if self.pending:
            at %= len(self.pending)
            self.ended.add(self.pending[at].id)
            self.pending[at] = self.pending[at]._replace(held=None)
            self.follow()

    def approve(self, at: int) -> None:
        waiting = [one for one in self.pending if one.held == "gate"]
        if waiting:
            one = waiting[at % len(waiting)]
            self.pending.remove(one)
            self.let_through.add(one.id)
            one = one._replace(sequence=number_for(one.sequence, self.thread, self.pending))
            found = place("knowledge.push", one.sequence, self.thread, self.pending)
            if found == "early":
                self.pending.append(one._replace(held="quarantine"))
            else:
                self.take(one.sequence)

    def arrive(self, number: int) -> None:
        """From another node."""
        try:
            place("knowledge.push", number, self.thread, ())
        except Conflict:
            return
        self.take(number)

    def take(self, number: int) -> None:
        self.delivered.append(number)
        self.thread = take(self.thread, number, Bounds(rounds=100))
        self.follow()

    def follow(self) -> None:
        while (first := turn(self.thread, self.pending)) is not None:
            self.pending = [one for one in self.pending if one.id != first.id]
            self.let_through.add(first.id)
            self.delivered.append(first.sequence)
            self.thread = self.thread._replace(sequence=first.sequence)
        self.pending = [
            one for one in self.pending if one.held or one.sequence > self.thread.sequence
        ]


NUMBERS = st.one_of(st.integers(1, 12), st.just(2**53 - 1))


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from("ab"), NUMBERS), max_size=40)
)
def test_whatever_others_do_the_next_message_is_deliverable(
    steps: list[tuple[str, str, int]],
) -> None:
    """§12.5: from any state that can be reached; and what is before its turn is lost to nobody."""
    talk = Conversation()
    waiting: list[str] = []
    for step, who, number in steps:
        before = talk.thread.sequence
        STEPS[step](talk, who, number)
        assert talk.thread.sequence >= before
        assert all(
            one.sequence > talk.thread.sequence for one in talk.pending if one.held != "gate"
        )
        waiting[:] = [one for one in waiting if one not in talk.ended]
        for id in {one.id for one in talk.pending if one.held}:
            if id not in waiting:
                waiting.append(id)
        held = {one.id for one in talk.pending if one.held}
        assert all(id in held or id in talk.let_through for id in waiting), "lost to nobody"
        following = talk.thread.sequence + 1
        assert following < 2**53 - 1
        assert place("knowledge.push", following, talk.thread, talk.pending) == "next"
    local = [number for number in talk.delivered if number < 2**53 - 1]
    if len(local) == len(talk.delivered):
        assert local == sorted(set(local)), "each number once, and in order"


@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 8)))
def test_what_one_sends_is_delivered_but_what_ends(order: list[int], end: set[int]) -> None:
    """However it comes, and however it is held up: in order, without waiting for what ended."""
    talk = Conversation()
    for number in order:
        talk.send("a", number, gate=number in end)
    for number in sorted(end, key=order.index):
        found = next((at for at, one in enumerate(talk.pending) if one.sequence == number), None)
        if found is not None:
            talk.end(found)
    assert talk.delivered == sorted(set(range(1, 9)) - end)
