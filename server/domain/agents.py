"""Agent ids (CACP 2.0, Agent ID): `aid://domain/name@version`. Not every deployed id is one."""

import re
from collections.abc import Iterable
from functools import lru_cache
from unicodedata import normalize

from schemas.plain import one_line
from server.domain.errors import Forbidden, InvalidInput

_AUTHORITY = re.compile("[Aa][Ii][Dd]://[^/]*")
"""What is of one case in an id: its scheme, and the domain behind it."""


@lru_cache(maxsize=4_096)
def identity(agent_id: str) -> str:
    """The agent without its version: an upgraded agent is still the same one.

    >>> identity("aid://example.com/backend@1.0.0")
    'aid://example.com/backend'
    """
    if not agent_id.startswith("aid://"):
        return agent_id
    name, _, version = agent_id.rpartition("@")
    return name if name and "/" not in version else agent_id


def same_agent(one: str, other: str) -> bool:
    """Whether two ids name one agent, whatever their versions."""
    return identity(one) == identity(other)


@lru_cache(maxsize=4_096)
def canonical(agent_id: str) -> str:
    """The id as it is to be written: without blanks around it and without what hides, in Unicode's
    NFKC, scheme and domain in lower case. What has no scheme keeps its case.

    >>> canonical(" AID://Example.com/Backend@1.0.0")
    'aid://example.com/Backend@1.0.0'
    """
    text = ""
    # What one step takes away may leave something for another.
    while text != agent_id:
        text, agent_id = agent_id, normalize("NFKC", one_line(agent_id))
        agent_id = _AUTHORITY.sub(lambda found: found[0].casefold(), agent_id, count=1)
    return text


def check_canonical(agent_id: str, path: str) -> None:
    """Raises InvalidInput (`agent_id_not_canonical`) for an id, given at `path`, that might be read
    as another one. Who shows no key is known by its id alone."""
    right = canonical(agent_id)
    if right != agent_id:
        raise InvalidInput(
            f"{path}: not in canonical form, which is {right!a}: no blanks around it, scheme "
            "and domain in lower case, Unicode in NFKC and nothing in it that does not show",
            reason="agent_id_not_canonical",
            path=path,
            canonical=right,
        )


def look_alike(agent_id: str, known: Iterable[str]) -> str | None:
    """The first of the known ids that is of another agent and has the same canonical form."""
    form = identity(canonical(agent_id))
    alike = (one for one in known if identity(canonical(one)) == form)
    return next((one for one in alike if not same_agent(one, agent_id)), None)


def check_unlike(agent_id: str, known: Iterable[str]) -> None:
    """Raises Forbidden (`looks_like_another`) for an id that reads as a known agent's."""
    like = look_alike(agent_id, known)
    if like is not None:
        raise Forbidden(
            f"{agent_id} is too much like {like!a}, which is known here: take another id, or "
            "send that agent's key",
            reason="looks_like_another",
            like=like,
        )
