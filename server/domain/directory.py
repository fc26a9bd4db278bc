"""What an ADP exchange decides: who may enter an agent, and who is found (CACP 2.0, ADP)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from schemas.adp import Manifest
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden

_WORD = re.compile(r"\w+")


class DirectoryEntry(NamedTuple):
    """What a search looks at. `words` and `protocols` are joined by spaces, as on disk."""

    agent: str
    """The agent id without its version: an entry for each agent, not for each release."""
    words: str
    protocols: str


def words(text: str) -> frozenset[str]:
    """The words of a text, in lower case.

    >>> sorted(words("Frontend (TypeScript)"))
    ['frontend', 'typescript']
    """
    return frozenset(_WORD.findall(text.lower()))


def words_of(manifest: Manifest) -> frozenset[str]:
    """The words by which an agent is found."""
    about = manifest.metadata.cacp
    return words(
        " ".join(
            [
                manifest.aid.removeprefix("aid://"),
                manifest.name,
                manifest.description,
                *(f"{one.id} {one.description}" for one in manifest.capabilities),
                *protocols_of(manifest),
                *(one for one in (about.repo, about.role) if one),
                *about.languages,
            ]
        )
    )


def protocols_of(manifest: Manifest) -> frozenset[str]:
    """The protocols that an agent speaks, in lower case."""
    return frozenset(one.type.lower() for one in manifest.invocation.protocols)


def found(entries: Iterable[DirectoryEntry], query: str, protocols: Iterable[str]) -> list[str]:
    """The agents that a search finds, best first: those with most of its words, then by name.

    The agent that the query names comes before all. Without words everybody is found, without
    protocols whoever speaks any.
    """
    wanted = words(query.removeprefix("aid://"))
    spoken = {one.lower() for one in protocols}
    named = identity(query)
    ranked = []
    for entry in entries:
        if spoken and spoken.isdisjoint(entry.protocols.split()):
            continue
        hits = len(wanted.intersection(entry.words.split()))
        if hits or not wanted:
            ranked.append((entry.agent != named, -hits, entry.agent))
    return [agent for *_, agent in sorted(ranked)]


def check_registrar(
    aid: str, *, caller: str, keyed: bool, has_key: bool, pinned_to: str | None
) -> None:
    """Raise Forbidden or Conflict unless `caller` may enter `aid`.

    Who calls with a key enters itself, and nobody else. Who calls without one is a program on the
    exchange's own machine (`server.auth.authenticator`): it enters whom it likes, but no agent that
    has a key here or has entered itself. `pinned_to` is who entered the agent before.
    """
    if keyed and not same_agent(caller, aid):
        raise Forbidden(
            f"You are {caller}; another agent must register itself", reason="other_agent"
        )
    if not keyed and has_key:
        raise Forbidden(f"{aid} has a key: send it with the registration", reason="key_needed")
    if not keyed and pinned_to is not None and pinned_to != identity(caller):
        raise Conflict(f"{aid} has registered itself with a key: send it", reason="pinned")
