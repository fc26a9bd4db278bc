"""Who may say what: a node signs what its agents write (design §6, Authorship).

The words of another repo's agent pass through relays unharmed: a relay can't sign for their node.
"""

from typing import Any

from schemas.mesh import Signature
from server.domain.agents import same_agent
from server.domain.canonical import canonical


def statement(kind: str, place: str, body: dict[str, Any]) -> bytes:
    """What a node signs: the canonical JSON of `body`, of this kind, at this place.

    `place` is the contract of a fact, the project of a packet, the repo of a claim: so nothing
    that was said in one place can be moved to another.
    """
    return canonical([kind, place, body])


def may_speak(
    signature: Signature, author: str | None, *, author_is_node: bool, home: str | None
) -> bool:
    """Whether the node that signed may speak for the author.

    A node speaks for itself, and for agents that are no nodes and that no other node has spoken
    for; `home` is the node that first did. What has no author, any node of the mesh may say.
    """
    if author is None or same_agent(signature.node, author):
        return True
    if author_is_node:
        return False
    return home is None or same_agent(home, signature.node)
