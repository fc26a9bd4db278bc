"""Detects equivocation: a node that signed two contradicting things (design §7)."""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from schemas.facts import FACT, Fact, RoundFact, VersionFact
from schemas.mesh import SignedFact
from server.domain.agents import identity
from server.domain.contract import Facts
from server.domain.identifiers import repo_id_for

ONCE = {"packet": "packet_id", "file": "file_id", "file_request": "request_id"}
"""Kinds that are written once under a unique id, and the member that holds the id."""


def contradict(kind: str, first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether a node that signed both bodies, which have the same key, has contradicted itself.

    A changed value is stamped after the one that it replaces, so no honest node gives two values
    the same stamp. A version that is repeated with a later stamp is no contradiction: the node may
    have been restored from a backup.
    """
    if first == second:
        return False
    return kind in ONCE or _stamp(first) == _stamp(second)


def proves(kind: str, at: tuple[str, str], first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two bodies that another node presents contradict each other: both must belong to
    `at`, the place at which they are signed and their key there."""
    try:
        names = [_named(kind, at[0], body) for body in (first, second)]
        return names == [at[1], at[1]] and contradict(kind, first, second)
    except (KeyError, TypeError, AttributeError, ValidationError):
        return False


def _named(kind: str, place: str, body: dict[str, Any]) -> str | None:
    """The key of a signed body."""
    if kind == "fact":
        return _what(FACT.validate_python(body))
    if kind in ONCE:
        return str(body[ONCE[kind]])
    if kind == "claim":
        return identity(body["agent_id"])
    if kind == "repo":
        return repo_id_for(place, body["name"])
    return place if kind in ("header", "contract") else None


def at_one_time(facts: Facts, sent: Iterable[SignedFact]) -> Iterator[tuple[str, Fact, SignedFact]]:
    """Pairs of a known and a sent fact with the same author and stamp but different content, which
    no honest node signs; each with the key that they share. Versions with the same content count as
    equal, whatever parties they bind.

    One known fact for each author and stamp is enough as evidence.
    """
    if not facts:
        return
    known = {_said_at(fact): fact for fact in facts.values()}
    for signed in sent:
        fact = known.get(_said_at(signed.fact))
        if fact is not None and fact != signed.fact and facts.get(_key(signed.fact)) != signed.fact:
            yield _what(fact), fact, signed


def _said_at(fact: Fact) -> tuple[str, int, str | None]:
    author = None if isinstance(fact, RoundFact) else fact.agent_id
    return _what(fact), fact.stamp, author


def _key(fact: Fact) -> tuple[str, str]:
    return fact.kind, fact.key


def _what(fact: Fact) -> str:
    return f"{fact.kind} {fact.place if isinstance(fact, VersionFact) else fact.key}"


def _stamp(body: dict[str, Any]) -> Any:
    return body.get("stamp", body.get("renewed_at"))
