"""The changes between two contents of a contract, and what each means for either side (N2).

Two questions are asked of every change: does what a consumer has built to the old content fit a
provider at the new one, and the other way round? One model answers both. A sender and a receiver
meet; what may be sent must be within what is accepted.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from contracts.json_text import path_text, short_text
from contracts.model import Path
from schemas.base import present
from schemas.dialect import BrokenSide, Direction, Effect, Verdict

CHANGES_MAX = 200
"""Changes that are listed; the rest are counted."""

USERS_SHOWN = 3

ChangeKey = tuple[str, str, str | None, str | None]

UNDECIDED = "Its effect can't be decided from the content."
BOTH = "Neither side as built today fits the other one at the newer content."
WORDS_ONLY = "Only words for readers changed, which are not checked."
_RANK: dict[Verdict, int] = {"same": 0, "compatible": 1, "unknown": 2, "breaking": 3}


class ContractChange(NamedTuple):
    """A change at one place.

    `provider`: whether a provider built to the old content serves a consumer at the new one.
    `consumer`: whether a consumer built to the old content can use a provider at the new one.
    `side` tells whether it is about what the provider is sent or what it sends; None for both.
    `before` and `after` are JSON, cut if long; None where there is nothing.
    """

    path: str
    rule: str
    side: Direction | None
    provider: Effect
    consumer: Effect
    before: str | None
    after: str | None
    why: str

    @property
    def breaks(self) -> BrokenSide | None:
        """Whom it breaks for certain."""
        if self.provider == self.consumer == "breaking":
            return "both"
        if self.consumer == "breaking":
            return "consumer"
        return "provider" if self.provider == "breaking" else None


class ContractComparison(NamedTuple):
    """What changed from one content to the next.

    `verdict` answers what is asked first: may a provider go to the new content while consumers stay
    at the old one? It is the same as `consumer`, the worst effect of all changes on consumers;
    `same` if nothing changed. `provider` answers the reverse. `more` counts changes that are not
    listed.
    """

    verdict: Verdict
    provider: Verdict
    consumer: Verdict
    changes: list[ContractChange]
    more: int

    def wire(self) -> dict[str, Any]:
        """What a `schemas.comparison.ContentComparison` says."""
        return {
            "verdict": self.verdict,
            "provider": self.provider,
            "consumer": self.consumer,
            "changes": [
                present(change._asdict() | {"breaks": change.breaks}) for change in self.changes
            ],
            "moreChanges": self.more,
        }


def comparison_of(changes: Iterable[ContractChange]) -> ContractComparison:
    """The comparison that follows from its changes: those that break come first."""
    listed = sorted(
        changes,
        key=lambda change: (-_RANK[change.consumer], -_RANK[change.provider]),
    )
    consumer = _verdict([change.consumer for change in listed])
    provider = _verdict([change.provider for change in listed])
    more = max(0, len(listed) - CHANGES_MAX)
    return ContractComparison(consumer, provider, consumer, listed[:CHANGES_MAX], more)


def _verdict(effects: list[Effect]) -> Verdict:
    return max(effects, key=lambda effect: _RANK[effect]) if effects else "same"


def worse(first: Effect, second: Effect) -> Effect:
    return first if _RANK[first] >= _RANK[second] else second


class ChangeLog:
    """Collects the changes of one comparison: one for each place, rule and pair of values, however
    often it is met. Its effects are the worst of those that were noted."""

    def __init__(self) -> None:
        self._changes: dict[ChangeKey, ContractChange] = {}
        self._users: dict[ChangeKey, list[str]] = {}

    def add(
        self,
        path: Path,
        rule: str,
        why: str,
        *,
        before: Any = None,
        after: Any = None,
        side: Direction | None = None,
        provider: Effect = "compatible",
        consumer: Effect = "compatible",
        user: str | None = None,
    ) -> None:
        """Note a change. None stands for no value; a JSON null is given as `shown(None)`. `user` is
        the operation that it concerns, for what several may share."""
        self.take(
            ContractChange(
                path_text(path),
                rule,
                side,
                provider,
                consumer,
                short_text(before),
                short_text(after),
                why,
            ),
            user,
        )

    def take(self, change: ContractChange, user: str | None = None) -> None:
        """Note a change that is ready."""
        key = (change.path, change.rule, change.before, change.after)
        if user is not None and user not in (users := self._users.setdefault(key, [])):
            users.append(user)
        known = self._changes.get(key)
        if known is None:
            self._changes[key] = change
            return
        stronger = change if _weight(change) > _weight(known) else known
        joined = known._replace(
            side=known.side if known.side == change.side else None,
            provider=worse(known.provider, change.provider),
            consumer=worse(known.consumer, change.consumer),
            why=stronger.why,
        )
        alone = "both" in (known.breaks, change.breaks)
        self._changes[key] = (
            joined._replace(why=BOTH) if joined.breaks == "both" and not alone else joined
        )

    def unknown(
        self, path: Path, rule: str, why: str = UNDECIDED, before: Any = None, after: Any = None
    ) -> None:
        """Note a change whose effect on both sides is unknown."""
        self.add(
            path, rule, why, before=before, after=after, provider="unknown", consumer="unknown"
        )

    def comparison(self) -> ContractComparison:
        """All of it. What several operations share says which they are."""
        return comparison_of(
            change._replace(why=f"{change.why} Concerns {_listed(users)}.")
            if len(users := self._users.get(key, [])) > 1
            else change
            for key, change in self._changes.items()
        )

    def __len__(self) -> int:
        return len(self._changes)


def _listed(users: list[str]) -> str:
    """The first of some names, and how many follow."""
    more = len(users) - USERS_SHOWN
    return ", ".join(users[:USERS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _weight(change: ContractChange) -> int:
    return max(_RANK[change.consumer], _RANK[change.provider])
