"""The changes between two contents of a contract, and what each means for either side (N2).

Every change is reduced to one question: is what the new content allows within what the old one
allowed (`narrows`), and the reverse (`widens`)? Which side that breaks follows from who sends: of a
response the provider, of a request the consumer.
"""

from typing import Literal, NamedTuple

Effect = Literal["compatible", "breaking", "unknown"]
Verdict = Literal["same", "compatible", "breaking", "unknown"]
Direction = Literal["request", "response"]
"""Who sends: the consumer a request, the provider a response (and what it emits)."""


class Change(NamedTuple):
    """A change at one place.

    `provider`: whether a provider built to the old content serves a consumer at the new one.
    `consumer`: whether a consumer built to the old content can use a provider at the new one.
    `side` tells whether it is about what is sent to the provider or by it; None for both.
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


class Comparison(NamedTuple):
    """What changed from one content to the next.

    `verdict` answers the question that comes first: may a provider go to the new content while
    consumers stay at the old one? It is `consumer`, the worst effect of all changes on consumers,
    or `same`. `provider` answers the reverse. `more` counts changes that are not listed.
    """

    verdict: Verdict
    provider: Verdict
    consumer: Verdict
    changes: list[Change]
    more: int
