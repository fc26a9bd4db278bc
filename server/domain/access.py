"""The access that each trust level grants (CACP 2.0, Trust Levels; design §6).

| trust    | comes from                                   | read | write | sync |
|----------|----------------------------------------------|------|-------|------|
| verified | an agent's key, or the node's own agent      | yes  | yes   |      |
| known    | ADP and a challenge, no key exchanged        | yes  |       |      |
| peer     | keys exchanged between nodes, or made for one | yes  |       | yes  |
| runner   | a runner's key (`cacp keys create --runner`)  | yes  |       |      |
| visitor  | a key of an agent whose home is another node  | yes  |       |      |
| unkeyed  | a registered foreign peer without a key       | yes  |       | yes  |

An agent's key can't sync: it belongs to one repo's agent, while synced data is a node's statement.
Only the node's own agent may sync, over loopback: foreign peers on this machine call without a key,
and the sync methods believe their `source_agent` where CACP_TRUST_UNKEYED_PEERS says so
(docs/mesh.md).

The operator's powers are a credential, not a place: a program of this machine that calls without a
key is the node's own agent and nothing more. What is the operator's needs the operator's key
(`operator_needed`), and what a human decides needs a human's key.

The agents of a peer write on their own node, which signs what they write and syncs it here. This
node can't sign for them or for a visitor, and other nodes would refuse what they wrote here. An
unknown caller has no trust level and is refused before this check. The sync methods limit what an
unkeyed peer syncs to its own repo.

A runner may record receipts, and read; so may a verified caller, which may carry one: what counts
is the runner's signature. An unkeyed caller may not, nor one whose home is another node.
"""

from typing import Literal

from server.domain.errors import Forbidden

Trust = Literal["verified", "known", "peer", "runner", "visitor", "unkeyed"]
Access = Literal["read", "write", "sync", "record"]

GRANTS: dict[Trust, frozenset[Access]] = {
    "verified": frozenset({"read", "write", "record"}),
    "known": frozenset({"read"}),
    "peer": frozenset({"read", "sync"}),
    "runner": frozenset({"read", "record"}),
    "visitor": frozenset({"read"}),
    "unkeyed": frozenset({"read", "sync"}),
}


def check_trust(trust: Trust, access: Access, *, is_own: bool = False) -> None:
    """Raises Forbidden unless a caller of this trust has this access. `is_own` is True for the
    node's own agent over loopback, and for the operator."""
    if is_own and access == "sync":
        return
    if trust == "visitor" and access not in GRANTS[trust]:
        raise Forbidden(
            "Your home is another node; send writes and read mail there. This node gives you read "
            "access only, until your home node revokes your keys",
            reason="home_elsewhere",
        )
    if access == "sync" and access not in GRANTS[trust]:
        raise Forbidden(
            "This method needs a peer key; agent keys cannot call it. An operator of this node "
            "creates one with `cacp keys create AID --repo NAME --trust peer`; a cacp-server node "
            "gets its key with the mesh token or an invite",
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


def operator_needed(does: str) -> Forbidden:
    """The refusal of a caller without the operator's key. `does` is a verb with its object."""
    return Forbidden(
        f"Only the operator {does}: call with the operator's key. On the node's machine it is in "
        "the operator key file beside the database (`cacp keys operator` names it)",
        reason="operator_needed",
    )


def check_project(own: frozenset[str] | None, project_id: str) -> None:
    """Raises Forbidden when the caller's key or token is not for this project. `own` is None for a
    key that is for all projects."""
    if own is not None and project_id not in own:
        raise _other_project(own)


def check_unrestricted(own: frozenset[str] | None) -> None:
    """Raises Forbidden when the caller's key or token is limited to some projects: the call
    concerns the whole node."""
    if own is not None:
        raise _other_project(own)


def _other_project(own: frozenset[str]) -> Forbidden:
    ids = sorted(own)
    return Forbidden(
        f"Your key or project token is for project {' and '.join(ids)} only",
        reason="other_project",
        projectIds=ids,
    )
