"""What must be in the database at the end, and what readers of the stream must have been sent."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class ChangeRow(NamedTuple):
    """A change as a stream shows it. `at` is comparable: a stamp, or its ISO 8601 text."""

    seq: int
    at: str
    actor: str
    action: str
    entity: str
    entity_id: str
    outcome: str


class Balance(NamedTuple):
    """The effects of writes, by names that each stand for one call of one client."""

    lost: list[str]
    """Acknowledged, and not there."""
    doubled: list[str]
    """There more than once."""
    unasked: list[str]
    """There, though nobody asked for it, or whoever did was told that it had not taken place."""

    @property
    def is_even(self) -> bool:
        return not (self.lost or self.doubled or self.unasked)


def balance(acknowledged: Iterable[str], possible: Iterable[str], stored: Iterable[str]) -> Balance:
    """Compare what is stored with what clients were told. `possible`: what may be there or not,
    because the answer was lost."""
    told, counted = set(acknowledged), Counter(stored)
    return Balance(
        sorted(told - counted.keys()),
        sorted(name for name, count in counted.items() if count > 1),
        sorted(counted.keys() - told - set(possible)),
    )


def check_changes(table: Sequence[ChangeRow]) -> list[str]:
    """What is wrong with the order of the final table: the sequence and the stamps grow together,
    whatever the clocks of the replicas show."""
    return [
        f"change {later.seq} has stamp {later.at}, before {earlier.at} of change {earlier.seq}"
        for earlier, later in pairwise(table)
        if later.at < earlier.at or later.seq <= earlier.seq
    ]


def check_stream(
    events: Sequence[ChangeRow], table: Sequence[ChangeRow], after: int = 0
) -> list[str]:
    """What is wrong with what one reader was sent, over all of its connections, by the final table:
    each change after `after` must have come once, in order, and as it is stored. What comes after
    the last one it was sent may still have been on its way.
    """
    stored = {change.seq: change for change in table}
    problems, last, came = [], after, set()
    for event in events:
        if event.seq in came:
            problems.append(f"change {event.seq} came twice")
        elif event.seq <= last:
            problems.append(f"change {event.seq} came after {last}")
        if event.seq not in stored:
            problems.append(f"change {event.seq} is not stored: {event}")
        elif stored[event.seq] != event:
            problems.append(f"change {event.seq} was {event}, and {stored[event.seq]} is stored")
        came.add(event.seq)
        last = max(last, event.seq)
    skipped = [seq for seq in stored if after < seq < last and seq not in came]
    return problems + [f"change {seq} was skipped: {stored[seq]}" for seq in sorted(skipped)]
