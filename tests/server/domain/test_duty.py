"""Whatever is paused, lost or set back: one replica at a time acts, and each epoch has one."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.duty import LEASE, RENEW, SECOND, STALE, Lease, end_of, step, taken

NOW = 10**15


@dataclass
class Replica:
    """A replica as the duty knows it; `steady` is its own clock."""

    name: str
    epoch: int | None = None
    acts_until: int = 0
    seen: Lease | None = None
    seen_at: int = 0

    def turn(self, lease: Lease | None, server: int, steady: int) -> Lease | None:
        """One turn at the row; returns the row afterwards."""
        if lease != self.seen:
            self.seen, self.seen_at = lease, steady
        unchanged = steady - self.seen_at
        todo = step(lease, self.name, epoch=self.epoch, now=server, unchanged=unchanged)
        if todo == "wait":
            self.epoch = None
            return lease
        if todo == "renew":
            assert lease is not None
            lease = lease._replace(until=server + LEASE)
        else:
            lease = taken(lease, self.name, server)
            self.epoch = lease.epoch
        self.acts_until = end_of(steady)
        return lease

    def acts(self, steady: int) -> bool:
        return self.epoch is not None and steady < self.acts_until


PAUSES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3 * LEASE), st.booleans()), max_size=40
)
"""Which replica has its turn next, after how many microseconds, and whether it has stopped its
work by itself in between."""


@given(turns=PAUSES)
def test_never_do_two_act_and_no_epoch_has_two_holders(turns: list[tuple[int, int, bool]]) -> None:
    replicas = [Replica(name) for name in "abc"]
    lease: Lease | None = None
    time = 0
    holders: dict[int, str] = {}
    for which, pause, gives_up in turns:
        time += pause
        replica = replicas[which]
        if gives_up and not replica.acts(time):
            replica.epoch = None
        lease = replica.turn(lease, NOW + time, time)
        assert lease is not None
        assert holders.setdefault(lease.epoch, lease.holder) == lease.holder
        assert len([one for one in replicas if one.acts(time)]) <= 1


@given(turns=PAUSES, jumps=st.lists(st.integers(-(10**12), 10**12), min_size=40, max_size=40))
def test_epochs_have_one_holder_though_the_server_s_clock_is_set(
    turns: list[tuple[int, int, bool]], jumps: list[int]
) -> None:
    replicas = [Replica(name) for name in "abc"]
    lease: Lease | None = None
    time, server, last = 0, NOW, 0
    holders: dict[int, str] = {}
    for (which, pause, _), jump in zip(turns, jumps, strict=False):
        time, server = time + pause, server + pause + jump
        lease = replicas[which].turn(lease, server, time)
        assert lease is not None
        assert holders.setdefault(lease.epoch, lease.holder) == lease.holder
        assert lease.epoch >= last
        last = lease.epoch


@given(ahead=st.integers(0, 10**15))
def test_a_dead_holder_is_followed_however_far_away_its_end_is(ahead: int) -> None:
    dead = Lease("a", 7, NOW + ahead)
    other = Replica("b")
    for time in range(0, STALE + SECOND, SECOND):
        other.turn(dead, NOW + time, time)
    assert other.epoch == 8


def test_a_holder_renews_before_its_lease_ends() -> None:
    held = Lease("a", 3, NOW + LEASE)
    assert step(held, "a", epoch=3, now=NOW + RENEW, unchanged=RENEW) == "renew"


@pytest.mark.parametrize("epoch", [None, 2])
def test_a_row_of_an_earlier_life_is_taken_anew(epoch: int | None) -> None:
    """After a failover that lost the last lease, the row may name a former holder."""
    held = Lease("a", 3, NOW + LEASE)
    assert step(held, "a", epoch=epoch, now=NOW, unchanged=0) == "take"
    assert taken(held, "a", NOW).epoch == 4


def test_a_lapsed_lease_is_taken_anew_by_its_holder_too() -> None:
    assert step(Lease("a", 3, NOW), "a", epoch=3, now=NOW, unchanged=0) == "take"


def test_a_released_lease_is_free_at_once_and_another_s_is_not() -> None:
    assert step(Lease("a", 3, 0), "b", epoch=None, now=NOW, unchanged=0) == "take"
    assert step(Lease("a", 3, NOW + 1), "b", epoch=None, now=NOW, unchanged=0) == "wait"
    assert step(None, "b", epoch=None, now=NOW, unchanged=0) == "take"
