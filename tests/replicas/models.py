"""What a contract, a task that is handed over, a mailbox and a replica's duty do when only one call
at a time comes to them: the product's rules (docs/contracts.md, docs/handoffs.md, docs/acp.md), as
few as the clients of `workload` need.

Results are what `workload` makes of an answer: a tuple of what it says, or `Refused`.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.replicas.history import Model, Operation


class Refused(NamedTuple):
    """A refusal by a rule, which has changed nothing."""

    reason: str


# --- contracts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContractState:
    """`version` is 0 before the proposal; `content` names it, `author` is its repo."""

    version: int = 0
    content: str = ""
    author: str = ""
    responses: frozenset[tuple[str, str]] = frozenset()
    """What each repo last said to this version: (repo, action)."""

    @property
    def status(self) -> str:
        actions = {action for _, action in self.responses}
        if "request_change" in actions:
            return "negotiating"
        agreeing = {repo for repo, action in self.responses if action == "agree"} - {self.author}
        return "agreed" if agreeing and "reject" not in actions else "proposed"


class ContractModel:
    """A contract whose parties are all repos, agreed by `any` of them: a register with versions.

    `propose(content, repo)`, `update(content, repo, version)`, `respond(action, repo, version)`,
    where `version` is the one that the caller expects, and `get()`.
    """

    initial = ContractState()

    def apply(self, state: ContractState, operation: Operation) -> tuple[ContractState, Any]:
        if operation.name == "get":
            return state, (state.version, state.content, state.status)
        what, repo, *expected = operation.args
        if operation.name == "propose":
            made = ContractState(1, str(what), str(repo))
            return made, (1, "proposed")
        if expected and expected[0] != state.version:
            return state, Refused("stale_version")
        if operation.name == "update":
            return _updated(state, str(what), str(repo))
        return _responded(state, str(what), str(repo))


def _updated(state: ContractState, content: str, repo: str) -> tuple[ContractState, Any]:
    if state.status == "agreed":
        return state, Refused("illegal_transition")
    after = ContractState(state.version + 1, content, repo)
    return after, (after.version, "proposed")


def _responded(state: ContractState, action: str, repo: str) -> tuple[ContractState, Any]:
    responses = dict(state.responses)
    if responses.get(repo) != action:
        if action == "reject" and state.status == "agreed":
            return state, Refused("illegal_transition")
        if action == "agree" and repo == state.author and responses.get(repo) != "request_change":
            return state, Refused("own_version")
    after = replace(state, responses=frozenset({**responses, repo: action}.items()))
    return after, (state.version, after.status)


# --- handoffs -------------------------------------------------------------------------------------


class TaskState(NamedTuple):
    """The offers of a task as (handoff, status), of which one at most is active, and its owner."""

    offers: tuple[tuple[str, str], ...] = ()

    def status_of(self, handoff: str) -> str:
        return dict(self.offers).get(handoff, "absent")

    def put(self, handoff: str, status: str) -> "TaskState":
        return TaskState(tuple(({**dict(self.offers), handoff: status}).items()))


STEPS = {
    ("accept", "proposed"): "accepted",
    ("reject", "proposed"): "rejected",
    ("activate", "accepted"): "activated",
}
ACTIVE = ("proposed", "accepted", "activated")


class TaskModel:
    """A task that its sender offers, to one receiver at a time: `initiate(handoff)`,
    `accept(handoff)`, `reject(handoff)` by either side, `activate(handoff)` and `get(handoff)`."""

    initial = TaskState()

    def apply(self, state: TaskState, operation: Operation) -> tuple[TaskState, Any]:
        handoff = str(operation.args[0])
        status = state.status_of(handoff)
        if operation.name == "initiate":
            return _offered(state, handoff, status)
        if status == "absent":
            return state, Refused("not_found")
        if operation.name == "get":
            return state, (status,)
        if operation.name == "accept" and status == "accepted":
            return state, (status,)
        after = STEPS.get((operation.name, status))
        if after is None:
            return state, Refused("illegal_transition")
        return state.put(handoff, after), (after,)


def _offered(state: TaskState, handoff: str, status: str) -> tuple[TaskState, Any]:
    if status != "absent":
        return state, (status,)
    if any(known in ACTIVE for _, known in state.offers):
        return state, Refused("ownership_conflict")
    return state.put(handoff, "proposed"), ("proposed",)


# --- mail -----------------------------------------------------------------------------------------


class MailboxState(NamedTuple):
    """What is not acknowledged, in order, and what is."""

    unread: tuple[str, ...] = ()
    read: frozenset[str] = frozenset()


class MailboxModel:
    """An inbox: `send(message)`, which takes each message once, `ack(message)` and `list()` of what
    is not acknowledged."""

    initial = MailboxState()

    def apply(self, state: MailboxState, operation: Operation) -> tuple[MailboxState, Any]:
        if operation.name == "list":
            return state, state.unread
        message = str(operation.args[0])
        if operation.name == "send":
            known = message in state.unread or message in state.read
            return (state if known else state._replace(unread=(*state.unread, message))), ("sent",)
        if message in state.unread:
            unread = tuple(each for each in state.unread if each != message)
            return MailboxState(unread, state.read | {message}), ("acked",)
        return state, ("acked" if message in state.read else "unknown",)


# --- duties ---------------------------------------------------------------------------------------


class DutyModel:
    """The duty to do what only one replica may: `take()`, which is told an epoch of its own, and
    `write(epoch)`, which is refused to who does not hold it any more. Clocks decide only when who
    tries to take it, so nothing here goes by them."""

    initial = 0

    def apply(self, state: int, operation: Operation) -> tuple[int, Any]:
        if operation.name == "take":
            return state + 1, (state + 1,)
        return state, ("written",) if operation.args == (state,) else Refused("duty_lost")


MODELS: dict[str, Model[Any]] = {
    "contract": ContractModel(),
    "task": TaskModel(),
    "mailbox": MailboxModel(),
    "duty": DutyModel(),
}
