"""One message of a mesh peer while it is merged (design §7)."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from peers.clock import is_ahead, is_due
from schemas.base import iso
from server.domain.agents import same_agent
from server.domain.errors import NotFound
from server.methods.base import Context, no_project, open_project
from server.methods.sync import new_contracts
from server.methods.sync.deferral import defer, signed_message, subject
from server.store import claims, deferred, lifecycle
from server.store.group_commit import Transaction
from server.store.projects import Membership
from server.util.log_once import name_once

T = TypeVar("T")


class MergeOutcome(NamedTuple):
    """What merging a message has done here: whether the entity is new, and whether it changed."""

    created: bool
    changed: bool


UNCHANGED = MergeOutcome(created=False, changed=False)


class PeerMessage:
    """Collects the skipped parts of a message, defers what can't be merged yet, and caches
    look-ups. `source` is the peer's agent id, `introduced` the keys that it brings."""

    def __init__(self, ctx: Context, source: str, introduced: dict[str, str]) -> None:
        self.source = source
        self.introduced = introduced
        self.ctx = Context(
            ctx.db, ctx.caller, ctx.node, ctx.method, ctx.stamp, ctx.transaction, source
        )
        self.skipped: list[dict[str, Any]] = []

    @property
    def transaction(self) -> Transaction:
        assert self.ctx.transaction is not None
        return self.ctx.transaction

    # --- look-ups -----------------------------------------------------------------------------

    def once(self, key: tuple[str, ...], look_up: Callable[[], T]) -> T:
        """The result of a look-up, remembered for the transaction unless it is empty."""
        memo = self.transaction.memo
        result: T | None = memo.get(key)
        if result is None:
            result = look_up()
            if result:
                memo[key] = result
        return result

    def open_project(self, project_id: str) -> None:
        """Raises NotFound for an unknown project, and for a deleted one."""

        def look_up() -> Membership:
            check_not_deleted(self.ctx, self.source, project_id)
            return open_project(self.ctx, project_id)

        self.once(("project", project_id), look_up)

    def has_claimed(self, project_id: str, repo_id: str, agent_id: str) -> bool:
        """Whether the agent has claimed the repo here."""
        return self.once(
            ("claim", project_id, repo_id, agent_id),
            lambda: claims.claimed_by(self.ctx.db, project_id, repo_id, agent_id),
        )

    def is_own_node(self, node: str) -> bool:
        return same_agent(node, self.ctx.node.agent_id)

    # --- skipping and deferring ---------------------------------------------------------------

    def skip(self, kind: str, id: str, reason: str) -> None:
        """Report an entity as not merged: to the peer, and once in the log. It is not retried."""
        self.skipped.append({"kind": kind, "id": id, "reason": reason})
        name_once("refused_from_peer", peer=self.source, kind=kind, id=id, reason=reason)

    def is_due(self, stamp: int) -> bool:
        """Whether a stamp is not too far ahead, or no further than one that was accepted before."""
        ctx = self.ctx
        return is_due(stamp, ctx.now, ctx.node.future_limit) or is_due(
            stamp, deferred.accepted(ctx.db), ctx.node.future_limit
        )

    def defer_until_due(self, method: str, params: Any, stamp: int) -> None:
        """Defer a message that is stamped too far ahead to be merged."""
        due, why = stamp - self.ctx.node.future_limit, f"it is stamped {iso(stamp)}"
        if self.defer(method, params, "stamp", subject(params), due, why):
            self.skipped.append({"kind": method, "id": "", "reason": "deferred until it is due"})

    def defer(
        self, method: str, params: Any, reason: deferred.Reason, about: str, due: int, why: str
    ) -> bool:
        """Defer a signed message. Returns False when the peer has too much deferred."""
        new_contracts.forget(self.transaction, about)
        message = signed_message(self.source, method, params)
        is_kept = defer(self.ctx, message, reason, about, due=due, why=why)
        if not is_kept:
            full = "too many of your messages are deferred: this one is dropped, send it later"
            self.skipped.append({"kind": method, "id": "", "reason": full})
        return is_kept

    def see(self, stamp: int) -> None:
        """Stamp what is written here from now on after `stamp`, unless that is far ahead."""
        transaction = self.transaction
        transaction.stored = max(transaction.stored, stamp)
        if not is_ahead(stamp, transaction.now):
            transaction.seen = max(transaction.seen, stamp)


def check_not_deleted(ctx: Context, source: str, project_id: str) -> None:
    """Raises NotFound when a peer sends something of a project that was deleted, and counts it."""
    register = lifecycle.find(ctx.db, project_id)
    if register is not None and register.is_deleted:
        ctx.node.deleted_refused[source] += 1
        raise no_project(ctx, project_id)


def no_claim(project_id: str, repo_id: str, agent_id: str) -> NotFound:
    return NotFound(
        f"{agent_id} has no claim here on repo {repo_id}: send the project first",
        kind="claim",
        projectId=project_id,
    )
