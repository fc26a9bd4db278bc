"""Finds differences that comparing two nodes doesn't remove (design §7). Pure.

What differs is fetched and joined. So a difference that stays while neither side changes doesn't go
away: one node refuses what the other holds, or their rules or disks differ.
"""

from collections.abc import Mapping

from peers.digest import Name

ROUNDS = 5
"""Comparisons in which an entity has to differ in the same way to be reported."""

Pair = tuple[str, str]
"""The digest here, and that of the peer."""


class Unequal:
    """Counts for how many comparisons each entity has differed in one way."""

    def __init__(self) -> None:
        self._seen: dict[Name, tuple[Pair, int]] = {}

    def note(self, differing: Mapping[Name, Pair]) -> list[Name]:
        """Count what a comparison found. Returns the entities that stay different."""
        seen = {}
        for name, pair in differing.items():
            before, rounds = self._seen.get(name, (pair, 0))
            seen[name] = (pair, rounds + 1 if before == pair else 1)
        self._seen = seen
        return sorted(name for name, (_, rounds) in seen.items() if rounds > ROUNDS)
