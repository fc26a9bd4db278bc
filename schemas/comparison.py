"""What a change of a contract's content breaks, and for whom."""

from schemas.base import Count, Identifier, Ordinal, Result
from schemas.dialect import BrokenSide, DialectName, Direction, Effect, Verdict


class ContentChange(Result):
    """A change at one JSON path.

    `provider`: whether a provider built to the older content serves a consumer at the newer one.
    `consumer`: whether a consumer built to the older content can use a provider at the newer one.
    `side` tells whether it is about what the provider is sent or what it sends; absent for both.
    `breaks` is whom it breaks for certain; absent for nobody. `before` and `after` are JSON, cut if
    it is long.
    """

    path: str
    rule: str
    side: Direction | None = None
    breaks: BrokenSide | None = None
    provider: Effect
    consumer: Effect
    before: str | None = None
    after: str | None = None
    why: str


class ContentComparison(Result):
    """The changes from one content to another; those that break consumers come first.

    `verdict` answers what is asked first: may a provider go to the newer content while consumers
    stay at the older one? It is the worst effect of all changes on consumers, and `same` if nothing
    changed. `provider` is the worst effect on providers built to the older content, which meet
    consumers at the newer one; `consumer` is the same as `verdict`. What can't be decided is
    `unknown`, which is never to be taken as fine. `more_changes` counts those left out.
    """

    verdict: Verdict
    provider: Verdict
    consumer: Verdict
    changes: list[ContentChange]
    more_changes: Count


class VersionComparison(ContentComparison):
    """A next version compared with version `against`: the last that was agreed, else the one
    before. `concerns` names the repos that it burdens: those of a side for which it is breaking or
    unknown, without its author."""

    against: Ordinal
    concerns: list[Identifier]


class ContentNote(Result):
    """What is wrong with a content in its dialect, and what would be right."""

    path: str
    why: str


class ReadContent(Result):
    """How a content was read: the dialect that was declared or recognised, and what is odd in
    it."""

    dialect: DialectName
    warnings: list[ContentNote]
