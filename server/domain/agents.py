"""Agent ids (CACP 2.0, Agent ID): `aid://domain/name@version`. Not every deployed id is one."""

from functools import lru_cache


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
