"""When has a node said two things where it could honestly say one? (design §7)."""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from schemas.facts import Fact, RoundFact, VersionFact
from schemas.mesh import SignedFact
from server.domain.agents import identity
from server.domain.contract import Facts
from server.domain.identifiers import repo_id_for

ONCE = {"packet": "packet_id", "file": "file_id", "file_request": "request_id"}
"""What is written once, under an id that is given once, and which member that is."""
_FACT: TypeAdapter[Fact] = TypeAdapter(Fact)


def is_two_faced(kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether one node that signed both has contradicted itself. Both are of one key.

    What may change is stamped after what it takes the place of, so no honest node gives two of it
    one stamp. A version that is said again later is no contradiction: a node that was restored from
    a backup has forgotten the first.
    """
    if ours == theirs:
        return False
    return kind in ONCE or _stamp(ours) == _stamp(theirs)


def proves(kind: str, at: tuple[str, str], ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether two things that another node shows contradict each other: both are of `at`, which is
    where they are signed and the key there."""
    try:
        names = [_named(kind, at[0], body) for body in (ours, theirs)]
        return names == [at[1], at[1]] and is_two_faced(kind, ours, theirs)
    except (KeyError, TypeError, AttributeError, ValidationError):
        return False


def _named(kind: str, place: str, body: dict[str, Any]) -> str | None:
    """The key of what a node has signed."""
    if kind == "fact":
        return _what(_FACT.validate_python(body))
    if kind in ONCE:
        return str(body[ONCE[kind]])
    if kind == "claim":
        return identity(body["agent_id"])
    if kind == "repo":
        return repo_id_for(place, body["name"])
    return place if kind in ("header", "contract") else None


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
