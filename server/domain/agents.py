"""Agent ids (CACP 2.0, Agent ID): `aid://domain/name@version`. Some deployed ids have another
form."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

from schemas.plain import one_line
from server.domain.errors import Forbidden, InvalidInput

NAME_WIDTH = 60
_AUTHORITY = re.compile("[Aa][Ii][Dd]://[^/]*")
"""The case-insensitive part of an id: its scheme and domain."""


class RunnerKey(NamedTuple):
    """The key of a runner as its node knows it: of `agent_id`, for the repo of one name or for all
    (""), and for some projects or for all (None)."""

    agent_id: str
    repo: str
    is_revoked: bool
    projects: frozenset[str] | None


@lru_cache(maxsize=4_096)
def identity(agent_id: str) -> str:
    """The agent id without its version: an upgraded agent stays the same agent.

    >>> identity("aid://example.com/backend@1.0.0")
    'aid://example.com/backend'
    """
    if not agent_id.startswith("aid://"):
        return agent_id
    name, _, version = agent_id.rpartition("@")
    return name if name and "/" not in version else agent_id


def short_name(agent_id: str) -> str:
    """The last part of an agent's id without its version, for sentences that people read. It names
    an agent among its neighbours only.

    >>> short_name("aid://example.com/backend@1.0.0")
    'backend'
    """
    name = identity(agent_id)
    return one_line(name.rpartition("/")[2] or name, NAME_WIDTH)


def same_agent(agent_id: str, other_id: str) -> bool:
    """Whether two ids name the same agent, whatever their versions."""
    return identity(agent_id) == identity(other_id)


@lru_cache(maxsize=4_096)
def canonical(agent_id: str) -> str:
    """The canonical form of an id: no leading or trailing spaces, no invisible characters, Unicode
    NFKC, scheme and domain in lower case. An id without a scheme keeps its case.

    >>> canonical(" AID://Example.com/Backend@1.0.0")
    'aid://example.com/Backend@1.0.0'
    """
    text = ""
    # Each step may leave something for another one to normalise.
    while text != agent_id:
        text, agent_id = agent_id, normalize("NFKC", one_line(agent_id))
        agent_id = _AUTHORITY.sub(lambda authority: authority[0].casefold(), agent_id, count=1)
    return text


def check_canonical(agent_id: str, path: str) -> None:
    """Raises InvalidInput (`agent_id_not_canonical`) for an id, given at `path`, that could be
    mistaken for another one. A caller without a key is known by its id alone."""
    right = canonical(agent_id)
    if right != agent_id:
        raise InvalidInput(
            f"{path}: is not in canonical form, which is {right!a}: without leading or trailing "
            "spaces, scheme and domain in lower case, Unicode NFKC, no invisible characters",
            reason="agent_id_not_canonical",
            path=path,
            canonical=right,
        )


def look_alike(agent_id: str, known: Iterable[str]) -> str | None:
    """The first known id of another agent that has the same canonical form."""
    form = identity(canonical(agent_id))
    alike = (candidate for candidate in known if identity(canonical(candidate)) == form)
    return next((candidate for candidate in alike if not same_agent(candidate, agent_id)), None)


def check_unlike(agent_id: str, known: Iterable[str]) -> None:
    """Raises Forbidden (`looks_like_another`) for an id that looks like a known agent's."""
    like = look_alike(agent_id, known)
    if like is not None:
        raise Forbidden(
            f"{agent_id} is too similar to {like!a}, which is known here: choose another id, or "
            "send that agent's key",
            reason="looks_like_another",
            like=like,
        )
