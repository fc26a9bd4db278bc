"""What each trust level may do (CACP 2.0, Trust Levels; design §6).

| trust    | comes from                                   | read | write | sync |
|----------|----------------------------------------------|------|-------|------|
| verified | an agent's key, or the node's own agent      | yes  | yes   |      |
| known    | ADP and a challenge, no key exchanged        | yes  |       |      |
| peer     | keys exchanged between nodes, or made for one | yes  |       | yes  |
| visitor  | a key, whose agent is at home on another node | yes  |       |      |
| unkeyed  | a registered foreign peer, at its word        | yes  |       | yes  |

An agent's key syncs nothing: it is for one repo's agent, and what syncs is taken as a node's word.
Only the node's own agent may, over loopback: foreign peers on this machine call without a key, and
the sync methods take them at the word of their `source_agent` (docs/mesh.md).

A peer has full access by syncing: what its agents write, they write on their own node, which signs
it. This node can't sign in their name, nor in a visitor's: other nodes would refuse what it wrote
here. An unknown caller has no trust level: it is refused before
anything is asked here. What an unkeyed peer syncs counts for its own repo only, which is for the
sync methods to hold.
"""

from typing import Literal

from server.domain.errors import Forbidden

Trust = Literal["verified", "known", "peer", "visitor", "unkeyed"]
Access = Literal["read", "write", "sync"]

GRANTS: dict[Trust, frozenset[Access]] = {
    "verified": frozenset({"read", "write"}),
    "known": frozenset({"read"}),
    "peer": frozenset({"read", "sync"}),
    "visitor": frozenset({"read"}),
    "unkeyed": frozenset({"read", "sync"}),
}


def check(trust: Trust, access: Access, *, is_own: bool = False) -> None:
    """Raise Forbidden unless a caller of this trust may do that; `is_own` for the node's own agent,
    over loopback."""
    if is_own and access == "sync":
        return
    if trust == "visitor" and access not in GRANTS[trust]:
        raise Forbidden(
            "Your home is another node, which speaks for you: write there, and read your mail "
            "there. Here you may read, until that node has revoked your keys",
            reason="home_elsewhere",
        )
    if access == "sync" and access not in GRANTS[trust]:
        raise Forbidden(
            "Only a peer may do this, by a peer's key and not an agent's: an operator of this node "
            "makes one with `cacp keys create AID --repo NAME --trust peer`; a node of this make "
            "gets its own by the mesh token or an invite",
            reason="not_a_peer",
            trust=trust,
            access=access,
        )
    if access not in GRANTS[trust]:
        raise Forbidden(
            f"A caller of trust '{trust}' may not {access}; call with a verified key",
            reason="insufficient_trust",
            trust=trust,
            access=access,
        )


def check_project(own: frozenset[str] | None, project_id: str) -> None:
    """Raises Forbidden when a caller's key or token is for other projects; None: it is for all."""
    if own is not None and project_id not in own:
        raise _other_project(own)


def check_whole(own: frozenset[str] | None) -> None:
    """Raises Forbidden when a caller's key or token is for some projects, and this is for the node
    as a whole."""
    if own is not None:
        raise _other_project(own)


def _other_project(own: frozenset[str]) -> Forbidden:
    ids = sorted(own)
    return Forbidden(
        f"Your key or project token is for project {' and '.join(ids)}, and this is not of it",
        reason="other_project",
        projectIds=ids,
    )
