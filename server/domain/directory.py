"""Decisions of an ADP exchange: who may register an agent, and what a search finds (CACP 2.0,
ADP)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from schemas.adp import AdpManifest
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden

_WORD = re.compile(r"\w+")


class DirectoryEntry(NamedTuple):
    """The searchable part of a registration. `words` and `protocols` are joined by spaces."""

    agent: str
    """The agent id without its version."""
    words: str
    protocols: str


def words(text: str) -> frozenset[str]:
    """The words of a text, in lower case.

    >>> sorted(words("Frontend (TypeScript)"))
    ['frontend', 'typescript']
    """
    return frozenset(_WORD.findall(text.lower()))


def words_of(manifest: AdpManifest) -> frozenset[str]:
    """The words by which a search finds the agent."""
    about = manifest.metadata.cacp
    return words(
        " ".join(
            [
                manifest.aid.removeprefix("aid://"),
                manifest.name,
                manifest.description,
                *(
                    f"{capability.id} {capability.description}"
                    for capability in manifest.capabilities
                ),
                *protocols_of(manifest),
                *(word for word in (about.repo, about.role) if word),
                *about.languages,
            ]
        )
    )


def protocols_of(manifest: AdpManifest) -> frozenset[str]:
    """The protocols that an agent speaks, in lower case."""
    return frozenset(protocol.type.lower() for protocol in manifest.invocation.protocols)


def search(entries: Iterable[DirectoryEntry], query: str, protocols: Iterable[str]) -> list[str]:
    """The agents that match a search, best first: by the number of matching words, then by name.

    The agent that the query names comes first. Without words all agents match, without protocols
    those of any protocol.
    """
    wanted = words(query.removeprefix("aid://"))
    spoken = {protocol.lower() for protocol in protocols}
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
    """Raises Forbidden or Conflict unless `caller` may register `aid`.

    A caller with a key may register only itself. A caller without one is a program on the
    exchange's own machine (`server.auth.authenticator`): it may register any agent that has no key
    here and has not registered itself. `pinned_to` is the agent's former registrar.
    """
    if keyed and not same_agent(caller, aid):
        raise Forbidden(
            f"You are {caller}; another agent must register itself", reason="other_agent"
        )
    if not keyed and has_key:
        raise Forbidden(f"{aid} has a key: send it with the registration", reason="key_needed")
    if not keyed and pinned_to is not None and pinned_to != identity(caller):
        raise Conflict(f"{aid} has registered itself with a key: send it", reason="pinned")
