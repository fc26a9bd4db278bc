"""When has a node said two things where it could honestly say one? (design §6)."""

from collections.abc import Iterable, Iterator
from typing import Any

from schemas.facts import Fact, RoundFact, VersionFact
from schemas.mesh import SignedFact
from server.domain.contract import Facts

ONCE = frozenset({"packet", "file", "file_request"})
"""What is written once, under an id that is given once."""


def is_two_faced(kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether one node that signed both has contradicted itself. Both are of one key.

    What may change is stamped after what it takes the place of, so no honest node gives two of it
    one stamp. A version that is said again later is no contradiction: a node that was restored from
    a backup has forgotten the first.
    """
    if ours == theirs:
        return False
    return kind in ONCE or _stamp(ours) == _stamp(theirs)


def at_one_time(facts: Facts, sent: Iterable[SignedFact]) -> Iterator[tuple[str, Fact, SignedFact]]:
    """What one node can't honestly have said both, as it differs and has one stamp: what it is of,
    what is known, and what has come. Versions of one content are one thing, whoever they bind.

    Of many that are known of one author, one stands for all: two are evidence enough.
    """
    known = {_said_at(fact): fact for fact in facts.values()}
    for one in sent:
        fact = known.get(_said_at(one.fact))
        if fact is not None and fact != one.fact and facts.get(_key(one.fact)) != one.fact:
            yield _what(fact), fact, one


def _said_at(fact: Fact) -> tuple[str, int, str | None]:
    author = None if isinstance(fact, RoundFact) else fact.agent_id
    return _what(fact), fact.stamp, author


def _key(fact: Fact) -> tuple[str, str]:
    return fact.kind, fact.key


def _what(fact: Fact) -> str:
    return f"{fact.kind} {fact.place if isinstance(fact, VersionFact) else fact.key}"


def _stamp(body: dict[str, Any]) -> Any:
    return body.get("stamp", body.get("renewed_at"))
