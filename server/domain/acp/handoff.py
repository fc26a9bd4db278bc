"""Handoffs: the legal steps, who may take them, and who owns a task (acp-canonical §7.2).

`draft → proposed → validating → accepted|rejected → activated → completed → closed`

Four transitions go beyond the specification, because without them a task could get stuck: a sender
may withdraw an unaccepted handoff, a coordinator may revoke an accepted one, and an owner may hand
on the task, which closes its own handoff; when the next handoff fails, the node restores it.
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
"""An approver is a member of the teamspace who may close work of high risk (§8.4); a human is a
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
"""Final states; only a handoff that was handed on can be restored from them."""

ACTIVE: tuple[HandoffStatus, ...] = ("proposed", "validating", "accepted", "activated")
"""A task has at most one handoff in these states (§7.2 rule 3; idx_handoffs_task_active)."""

OFFERED: tuple[HandoffStatus, ...] = ("proposed", "validating")
"""States of an open offer: it reserves the task, which nobody owns yet."""

UNDER_SLA: tuple[HandoffStatus, ...] = ("accepted", "activated")
"""States in which the receiver has accepted and not yet completed (§7.2 rule 5)."""


TAKEN_OVER: tuple[HandoffStatus, ...] = ("accepted", "activated", "completed", "closed")
"""States in which the receiver has the task, or had it to the end."""


def owner_of(status: HandoffStatus, from_agent: str, to_agent: str) -> str:
    """Who has the task of a handoff in this state: its sender until the receiver has taken it."""
    return to_agent if status in TAKEN_OVER else from_agent


@dataclass(frozen=True, slots=True)
class HandoffRules:
    """The operator's settings for handoffs."""

    sla_seconds: int = 24 * 3600
    """From acceptance to completion (§7.2 rule 5)."""
    offer_seconds: int = 3 * 24 * 3600
    """From an offer to its acceptance; afterwards the task is free again."""
    checks_files: bool = False
    """Whether artifacts are checked in configured folders."""
    workq: bool = False
    """Whether a gateway moves ownership of workq items."""
    asks_evidence: bool = False
    """Whether agents here accept a package whose tests are said to pass only when its evidence
    holds."""


@dataclass(frozen=True, slots=True)
class Move:
    """A step from one state to the next, and who may take it."""

    before: HandoffStatus
    step: Step
    after: HandoffStatus
    by: tuple[Role, ...]
    about: str


MOVES: tuple[Move, ...] = (
    Move("draft", "propose", "proposed", ("sender",), "the receiver gets a message"),
    Move("draft", "reject", "rejected", ("sender",), "the sender discards it"),
    Move("proposed", "accept", "validating", ("receiver",), "the node begins its checks"),
    Move(
        "proposed",
        "reject",
        "rejected",
        ("receiver", "sender", "coordinator", "human"),
        "with a code and a detail; a sender withdraws the offer",
    ),
    Move(
        "validating",
        "pass",
        "accepted",
        ("node",),
        "schema, hash, policy, approvals and artifacts are valid: the receiver owns the task",
    ),
    Move("validating", "fail", "rejected", ("node",), "a check failed; its code says which"),
    Move(
        "validating",
        "reject",
        "rejected",
        ("receiver", "sender", "coordinator", "human"),
        "as from proposed, while an approval is missing",
    ),
    Move("proposed", "expire", "rejected", ("node",), "nobody accepted it in time"),
    Move(
        "validating",
        "expire",
        "rejected",
        ("node",),
        "an approval or artifact did not come in time",
    ),
    Move("accepted", "activate", "activated", ("receiver",), "the receiver has begun"),
    Move(
        "accepted",
        "revoke",
        "closed",
        ("coordinator",),
        "the previous owner has the task again",
    ),
    Move("activated", "complete", "completed", ("receiver",), "the sender gets a message"),
    Move("activated", "hand_on", "closed", ("receiver",), "a new handoff of the task replaces it"),
    Move(
        "activated",
        "revoke",
        "closed",
        ("coordinator",),
        "the previous owner has the task again",
    ),
    Move(
        "completed",
        "close",
        "closed",
        ("sender", "coordinator", "approver"),
        "the work is accepted; high risk in a teamspace: only by the roles of §8.4",
    ),
    Move(
        "closed",
        "restore",
        "activated",
        ("node",),
        "the next handoff was rejected or revoked: the receiver keeps the task",
    ),
)
"""All steps. The diagram in docs/handoffs.md is generated from it."""

_MOVES = {(move.before, move.step): move for move in MOVES}


@dataclass(frozen=True, slots=True)
class Parties:
    """The sender, the receiver and the coordinators of a handoff."""

    sender: str
    receiver: str
    coordinators: tuple[str, ...] = ()

    def roles_of(self, agent_id: str) -> tuple[Role, ...]:
        """Every role that the agent has, never that of the node."""
        roles: list[Role] = []
        if same_agent(agent_id, self.sender):
            roles.append("sender")
        if same_agent(agent_id, self.receiver):
            roles.append("receiver")
        if any(same_agent(agent_id, coordinator) for coordinator in self.coordinators):
            roles.append("coordinator")
        return tuple(roles)


def move(before: HandoffStatus, step: Step, roles: Iterable[Role]) -> tuple[HandoffStatus, Role]:
    """The state after a step, and the role in which it is taken.

    Raises Forbidden when none of these roles may take the step at all, or not in this state;
    IllegalTransition when the state does not allow it.
    """
    held = tuple(roles)
    ever = {role for edge in MOVES if edge.step == step for role in edge.by}
    if not ever & set(held):
        raise _forbidden(step, held, ever)
    edge = _MOVES.get((before, step))
    if edge is None:
        allowed = [
            edge.step for edge in MOVES if edge.before == before and set(edge.by) & set(held)
        ]
        open_steps = f"open to you: {', '.join(allowed)}" if allowed else "no step is open to you"
        raise IllegalTransition(
            f"Cannot {_verb(step)} a handoff that is {before}; {open_steps}",
            **cast(dict[str, Any], {"from": before, "allowed": allowed}),
        )
    role = next((candidate for candidate in edge.by if candidate in held), None)
    if role is None:
        raise _forbidden(step, held, set(edge.by))
    return edge.after, role


def _forbidden(step: Step, held: tuple[Role, ...], by: set[Role]) -> Forbidden:
    outside = "; outside teamspaces the operator's or a human's key makes a coordinator"
    hint = outside if "coordinator" in by else ""
    return Forbidden(
        f"Only its {' or '.join(sorted(by))} may {_verb(step)} this handoff{hint}",
        reason="wrong_party",
        needs=sorted(by),
        roles=list(held),
    )


def _verb(step: Step) -> str:
    return "hand over" if step == "hand_on" else step


def may_do(status: HandoffStatus, roles: Iterable[Role]) -> list[Step]:
    """The steps that these roles may take now."""
    held = set(roles)
    return [edge.step for edge in MOVES if edge.before == status and held & set(edge.by)]


@dataclass(frozen=True, slots=True)
class HeldElsewhere:
    """What a method returns in place of its result when another node holds the handoff: the call
    that `node` is to answer.

    `call` is the params of `acp/handoff` there, in the name of `agent`; `human`: the agent's key is
    a human's. `outcome` is set for callers of `acp/approve`.
    """

    handoff_id: str
    node: str
    agent: str
    call: dict[str, Any]
    human: bool = False
    outcome: Literal["approved", "refused"] | None = None

    def result(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The caller's result, made from the other node's answer to `call`."""
        if self.outcome is None:
            return answer
        return {"handoff": answer.get("handoff"), "receipts": [], "outcome": self.outcome}


# --- ownership ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of a task: the last of the chain of its owners, which only the node writes."""

    chain: tuple[str, ...]

    @property
    def owner(self) -> str:
        return self.chain[-1]


@dataclass(frozen=True, slots=True)
class OwnershipGrant:
    """What made an agent the owner of a task: an assignment by a coordinator, or an acceptance."""

    chain: tuple[str, ...]
    """The task's owners in order, the new one last."""
    ended: Literal["close", "revoke"] | None = None
    """The step that ended it."""


def owner(grants: Iterable[OwnershipGrant]) -> Ownership | None:
    """The owner of a task by its grants, the newest first; None when nobody owns it.

    An offer grants nothing, so a withdrawn or rejected one has no effect. A revoked grant does not
    count. A closed one is done, and its task is free.
    """
    for grant in grants:
        if grant.ended != "revoke":
            return None if grant.ended == "close" else Ownership(grant.chain)
    return None


def chain_for(owned: Ownership | None, sender: str, receiver: str) -> tuple[str, ...]:
    """The `handoff_chain` of a handoff: the task's owners in order, the sender last.

    Anyone may hand on a task that nobody owns. Raises Conflict: `ownership_conflict` when another
    agent owns it, `handoff_cycle` when the receiver has owned it before (§7.2 rules 3 and 6).
    """
    chain = owned.chain if owned is not None else (sender,)
    if not same_agent(chain[-1], sender):
        raise Conflict(
            f"{chain[-1]} owns this task; only its owner may hand it over",
            reason="ownership_conflict",
            owner=chain[-1],
        )
    if any(same_agent(agent_id, receiver) for agent_id in chain):
        raise Conflict(
            f"{receiver} has owned this task before: handing it back would make a cycle. "
            "Complete or reject instead, or ask the coordinator to assign the task",
            reason="handoff_cycle",
            chain=list(chain),
        )
    return chain


def check_chain(given: Sequence[str], chain: Sequence[str]) -> None:
    """Raises InvalidInput (`chain_differs`) with the first place at which the sender's
    `handoff_chain` differs from the one that the node derives. An empty one is not checked.
    """
    for place, (claimed, derived) in enumerate(zip_longest(given, chain) if given else ()):
        if claimed is not None and derived is not None and same_agent(claimed, derived):
            continue
        path = f"package.provenance.handoff_chain.{place}"
        raise InvalidInput(
            f"{path}: is {claimed or 'missing'}; expected {derived or 'the end of the chain'}. "
            f"The chain is {', '.join(chain)}: the task's owners in order, you last, without the "
            "receiver. Leave it out, and the node fills it in",
            reason="chain_differs",
            path=path,
            expected=derived,
            chain=list(chain),
        )


# --- the checks of `validating` -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandoffProblem:
    """Why a handoff can't be accepted: a code of §7.3 and a detail."""

    code: HandoffRejectReason
    detail: str


def package_hash(package: dict[str, Any]) -> str:
    """SHA-256, hex, of the package's canonical JSON (RFC 8785) without its `package_hash`.

    Raises InvalidInput with the path of a value that has no canonical form.
    """
    bare = dict(package)
    verification = bare.pop("verification", None)
    if verification is not None:
        bare["verification"] = {
            name: value for name, value in verification.items() if name != "package_hash"
        }
    return canonical.digest(bare, "package")


def why_unchecked(ref: dict[str, Any]) -> str | None:
    """Why a node does not check an artifact; None for one that it checks (§7.2 rule 4): a file that
    has a hash or is required."""
    if ref["type"] != "file":
        return f"the node does not check artifacts of type {ref['type']}"
    if ref.get("sha256") is None and not ref.get("required"):
        return "it has no sha256 and is not required"
    return None


def policy_problem(policy: HandoffPolicy, receiver: str) -> HandoffProblem | None:
    """How the receiver violates the package's policy; None when it does not."""
    for restriction in policy.export_restrictions or []:
        named = restriction.strip().lower()
        if same_agent(named, receiver.lower()) or named.rstrip(".") == domain_of(receiver):
            return HandoffProblem(
                "policy_violation",
                f"export_restrictions: the package may not go to {restriction}",
            )
    return None


def domain_of(agent_id: str) -> str | None:
    """The domain of an agent id, in lower case; None for an id that does not start with `aid://`."""
    name = identity(agent_id).removeprefix("aid://")
    return name.partition("/")[0].lower() if agent_id.startswith("aid://") else None


def due(begun_at: int, seconds: int) -> int:
    """When an accepted handoff is escalated (§7.2 rule 5) or an offer expires, as a stamp."""
    return begun_at + seconds * 1_000_000
