"""Handoffs: which step is legal, who may take it, and who owns a task (acp-canonical §7.2).

`draft → proposed → validating → accepted|rejected → activated → completed → closed`

Four edges are ours, because without them a task could be stuck: a sender may withdraw what is not
accepted, a coordinator may revoke what was accepted, and an owner may hand on what it accepted,
which closes the handoff that it came by; when the next one comes to nothing, the node restores it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, cast

from schemas.acp import HandoffRejectReason
from schemas.handoff import HandoffPolicy, HandoffStatus
from server.domain import canonical
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, IllegalTransition, InvalidInput

Role = Literal["sender", "receiver", "coordinator", "approver", "human", "node"]
"""An approver is a member of the teamspace whom §8.4 lets close work of high risk; a human is the
holder of a human's key, where the package requires human approval."""
Step = Literal[
    "propose",
    "accept",
    "pass",
    "fail",
    "reject",
    "activate",
    "complete",
    "close",
    "revoke",
    "hand_on",
    "restore",
    "expire",
]

ENDED: tuple[HandoffStatus, ...] = ("rejected", "closed")
"""States that leave nothing to do: but for what was handed on, nothing follows them."""

ACTIVE: tuple[HandoffStatus, ...] = ("proposed", "validating", "accepted", "activated")
"""A task has one handoff in these states at most (§7.2 rule 3; idx_handoffs_task_active)."""

OFFERED: tuple[HandoffStatus, ...] = ("proposed", "validating")
"""States of an offer that stands: it keeps the task from others, and nobody has it."""

UNDER_SLA: tuple[HandoffStatus, ...] = ("accepted", "activated")
"""States in which the receiver has said yes and has not completed (§7.2 rule 5)."""


@dataclass(frozen=True, slots=True)
class HandoffRules:
    """What an operator settles about handoffs."""

    sla_seconds: int = 24 * 3600
    """From acceptance to completion (§7.2 rule 5)."""
    offer_seconds: int = 3 * 24 * 3600
    """From an offer to its acceptance; then the task is free again."""
    checks_files: bool = False
    """Whether there are roots under which artifacts are checked."""
    workq: bool = False
    """Whether there is a gateway to move ownership at workq."""


@dataclass(frozen=True, slots=True)
class Move:
    """A step from one state to the next, and who may take it."""

    before: HandoffStatus
    step: Step
    after: HandoffStatus
    by: tuple[Role, ...]
    about: str


MOVES: tuple[Move, ...] = (
    Move("draft", "propose", "proposed", ("sender",), "the receiver is told"),
    Move("draft", "reject", "rejected", ("sender",), "the sender discards it"),
    Move("proposed", "accept", "validating", ("receiver",), "the node begins its checks"),
    Move(
        "proposed",
        "reject",
        "rejected",
        ("receiver", "sender", "coordinator", "human"),
        "with a code and a detail; by the sender it is a withdrawal",
    ),
    Move(
        "validating",
        "pass",
        "accepted",
        ("node",),
        "schema, hash, policy, approvals and artifacts hold: the receiver owns the task",
    ),
    Move("validating", "fail", "rejected", ("node",), "a check failed; its code says which"),
    Move(
        "validating",
        "reject",
        "rejected",
        ("receiver", "sender", "coordinator", "human"),
        "as above, while an approval is missing",
    ),
    Move("proposed", "expire", "rejected", ("node",), "nobody accepted it in time"),
    Move("validating", "expire", "rejected", ("node",), "what it waits for did not come in time"),
    Move("accepted", "activate", "activated", ("receiver",), "the receiver has begun"),
    Move(
        "accepted",
        "revoke",
        "closed",
        ("coordinator",),
        "who had it before owns the task again",
    ),
    Move("activated", "complete", "completed", ("receiver",), "the sender is told"),
    Move("activated", "hand_on", "closed", ("receiver",), "it hands the task on"),
    Move(
        "activated",
        "revoke",
        "closed",
        ("coordinator",),
        "who had it before owns the task again",
    ),
    Move(
        "completed",
        "close",
        "closed",
        ("sender", "coordinator", "approver"),
        "the work is taken; what is of high risk in a teamspace, by those alone whom §8.4 names",
    ),
    Move(
        "closed",
        "restore",
        "activated",
        ("node",),
        "the handoff that followed was rejected: the receiver owns the task still",
    ),
)
"""Every step that there is. The diagram in docs/handoffs.md is made from it."""

_MOVES = {(move.before, move.step): move for move in MOVES}


@dataclass(frozen=True, slots=True)
class Parties:
    """Who is who in a handoff."""

    sender: str
    receiver: str
    coordinators: tuple[str, ...] = ()

    def roles_of(self, agent_id: str) -> tuple[Role, ...]:
        """Every role that the agent has; never the node's own."""
        roles: list[Role] = []
        if same_agent(agent_id, self.sender):
            roles.append("sender")
        if same_agent(agent_id, self.receiver):
            roles.append("receiver")
        if any(same_agent(agent_id, one) for one in self.coordinators):
            roles.append("coordinator")
        return tuple(roles)


def move(before: HandoffStatus, step: Step, roles: Iterable[Role]) -> tuple[HandoffStatus, Role]:
    """The state after a step, and the role in which it is taken.

    Raises Forbidden when nobody of these roles may ever take the step, or not from this state;
    IllegalTransition when the state does not have it.
    """
    held = tuple(roles)
    ever = {role for one in MOVES if one.step == step for role in one.by}
    if not ever & set(held):
        raise _forbidden(step, held, ever)
    found = _MOVES.get((before, step))
    if found is None:
        allowed = [one.step for one in MOVES if one.before == before and set(one.by) & set(held)]
        said = ", ".join(allowed) if allowed else "nothing"
        raise IllegalTransition(
            f"The handoff is {before}: it can't {step.replace('_', ' ')}; you may do: {said}",
            **cast(dict[str, Any], {"from": before, "allowed": allowed}),
        )
    role = next((one for one in found.by if one in held), None)
    if role is None:
        raise _forbidden(step, held, set(found.by))
    return found.after, role


def _forbidden(step: Step, held: tuple[Role, ...], by: set[Role]) -> Forbidden:
    return Forbidden(
        f"Only its {' or '.join(sorted(by))} may {step.replace('_', ' ')} this handoff",
        reason="wrong_party",
        needs=sorted(by),
        roles=list(held),
    )


def may_do(status: HandoffStatus, roles: Iterable[Role]) -> list[Step]:
    """The steps that these roles may take now."""
    held = set(roles)
    return [one.step for one in MOVES if one.before == status and held & set(one.by)]


# --- ownership ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns a task: the last of the chain of its owners, which the node alone writes."""

    chain: tuple[str, ...]

    @property
    def owner(self) -> str:
        return self.chain[-1]


@dataclass(frozen=True, slots=True)
class OwnershipGrant:
    """What made an agent the owner of a task: a coordinator's assignment, or an acceptance."""

    chain: tuple[str, ...]
    """The task's owners in order, the one who got it last."""
    ended: Literal["close", "revoke"] | None = None
    """The step that ended it."""


def owner(grants: Iterable[OwnershipGrant]) -> Ownership | None:
    """Who owns a task, by all that ever granted it, the newest first; None when nobody does.

    An offer grants nothing, so one that is withdrawn or rejected leaves nothing behind. What was
    revoked is as if it had not been granted. What was closed is done, and its task free.
    """
    for grant in grants:
        if grant.ended != "revoke":
            return None if grant.ended == "close" else Ownership(grant.chain)
    return None


def chain_for(owned: Ownership | None, sender: str, receiver: str) -> tuple[str, ...]:
    """The `handoff_chain` of a handoff: the task's owners in order, the sender last.

    A task that nobody owns is for anyone to hand on. Raises Conflict: `ownership_conflict` when
    another agent owns it, `handoff_cycle` when the receiver has owned it before (§7.2 rules 3 and
    6).
    """
    chain = owned.chain if owned is not None else (sender,)
    if not same_agent(chain[-1], sender):
        raise Conflict(
            f"{chain[-1]} owns this task: only the owner hands it on",
            reason="ownership_conflict",
            owner=chain[-1],
        )
    if any(same_agent(one, receiver) for one in chain):
        raise Conflict(
            f"{receiver} has owned this task before: handing it back would make a circle. "
            "Complete or reject instead, or ask the coordinator to assign the task",
            reason="handoff_cycle",
            chain=list(chain),
        )
    return chain


def check_chain(given: Sequence[str], chain: Sequence[str]) -> None:
    """Raise InvalidInput (`chain_differs`) with the first place at which the `handoff_chain` that a
    sender gives differs from the one that the node derives. An empty one says nothing.
    """
    for place, (said, derived) in enumerate(zip_longest(given, chain) if given else ()):
        if said is not None and derived is not None and same_agent(said, derived):
            continue
        path = f"package.provenance.handoff_chain.{place}"
        raise InvalidInput(
            f"{path}: {said or 'nothing'}, where {derived or 'nothing'} is expected. The chain is "
            f"{', '.join(chain)}: the task's owners in order, you last, without the receiver. "
            "Leave it out, and the node fills it in",
            reason="chain_differs",
            path=path,
            expected=derived,
            chain=list(chain),
        )


# --- the checks of `validating` -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandoffProblem:
    """Why a handoff can't be accepted: a code of §7.3 and what is wrong."""

    code: HandoffRejectReason
    detail: str


def package_hash(package: dict[str, Any]) -> str:
    """SHA-256, hex, of the package's canonical JSON (RFC 8785) without its `package_hash`.

    Raises InvalidInput naming what has no canonical form.
    """
    bare = dict(package)
    verification = bare.pop("verification", None)
    if verification is not None:
        bare["verification"] = {
            name: value for name, value in verification.items() if name != "package_hash"
        }
    return canonical.digest(bare, "package")


def why_unchecked(ref: dict[str, Any]) -> str | None:
    """Why a node does not look for an artifact; None for one that it does look for (§7.2 rule 4):
    a file that has a hash, or that is required."""
    if ref["type"] != "file":
        return f"a {ref['type']} is not checked by the node"
    if ref.get("sha256") is None and not ref.get("required"):
        return "it has no sha256, and is not required"
    return None


def policy_problem(policy: HandoffPolicy, receiver: str) -> HandoffProblem | None:
    """What the package's policy has against its receiver; None when it has nothing."""
    for restriction in policy.export_restrictions or []:
        named = restriction.strip().lower()
        if same_agent(named, receiver.lower()) or named.rstrip(".") == domain_of(receiver):
            return HandoffProblem(
                "policy_violation",
                f"export_restrictions: the package may not go to {restriction}",
            )
    return None


def domain_of(agent_id: str) -> str | None:
    """The domain in an agent id, in lower case; None when it is no AID."""
    name = identity(agent_id).removeprefix("aid://")
    return name.partition("/")[0].lower() if agent_id.startswith("aid://") else None


def due(begun_at: int, seconds: int) -> int:
    """The stamp at which an accepted handoff is escalated (§7.2 rule 5), or an offer expires."""
    return begun_at + seconds * 1_000_000
