"""The peer that a cacp/*/sync call comes from, and its repo in the project."""

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from schemas.base import stamp_of
from server.auth.authenticator import Caller
from server.domain.agents import check_canonical, same_agent
from server.domain.errors import Forbidden
from server.methods.base import Context, open_project
from server.methods.sync.deferral import defer
from server.methods.sync.peer_message import check_not_deleted
from server.store import claims, deferred, mesh, peers, projects
from server.store.projects import Membership, RepoMember
from server.util.log_once import name_once


@dataclass(slots=True)
class SendingPeer:
    """The peer that sends, and what of its message was skipped."""

    ctx: Context
    agent_id: str
    repo: str
    project_id: str
    is_mesh: bool = False
    """A mesh peer: it sends facts, and signs them."""
    skipped: list[dict[str, Any]] = field(default_factory=list)
    is_new: bool = False
    """Whether this call made the project: then all that the peer says of it counts."""
    _project: Membership | None = None

    def skip(self, kind: str, id: str, reason: str) -> None:
        """Report to the peer an entity of its message that is not merged, and why."""
        if kind == "contract":
            # The agents of a foreign peer don't learn of it: its node reads no answers.
            name_once("peer_contract_refused", peer=self.agent_id, contract=id, reason=reason)
        self.skipped.append({"kind": kind, "id": id, "reason": reason})

    @property
    def project(self) -> Membership:
        """The project's repos and who holds them, loaded once until they change."""
        if self._project is None:
            self._project = open_project(self.ctx, self.project_id)
        return self._project

    def members_changed(self) -> None:
        self._project = None

    @property
    def repo_id(self) -> str | None:
        """The peer's own repo in the project: that of its name, unless another agent holds it or it
        was released from the peer."""
        own = [
            member
            for member in self.project.members
            if (
                member.name == self.repo and not self._is_released(member)
                if member.agent_id is None
                else same_agent(member.agent_id, self.agent_id)
            )
        ]
        named = next((member for member in own if member.name == self.repo), None)
        return (named or own[0]).repo_id if own else None

    def _is_released(self, member: RepoMember) -> bool:
        place = (self.project_id, member.repo_id, self.agent_id)
        return claims.is_released_from(self.ctx.db, *place)

    def local_id(self, repo_id: str) -> str:
        """The id here of a repo that the peer names. An id of this node is never an alias."""
        if any(member.repo_id == repo_id for member in self.project.members):
            return repo_id
        return projects.resolve_alias(self.ctx.db, self.project_id, repo_id) or repo_id

    def past(self, time: str | None) -> int:
        """A peer's time as a stamp; now if it is absent or ahead of the clock here."""
        return self.ctx.stamp if time is None else min(stamp_of(time), self.ctx.stamp)

    def defer_until_fetched(self, params: BaseModel) -> bool:
        """Defer a call for a project that is unknown here, until it is fetched from the peer (§6).

        Returns False when the project is here, or can't be fetched.
        """
        ctx = self.ctx
        if projects.header(ctx.db, self.project_id) is not None or ctx.caller.projects is not None:
            return False
        if peers.find(ctx.db, self.agent_id) is None:
            return False
        text = params.model_dump_json(by_alias=True, exclude_none=True)
        message = deferred.DeferredMessage(self.agent_id, ctx.method, text, text)
        return defer(ctx, message, "project", self.project_id, due=0)


def sending_peer(ctx: Context, source_agent: str, project_id: str) -> SendingPeer:
    """The peer that sends: registered here, and authenticated as `source_agent` (design §6).

    Foreign peers may send no credentials. Where this node trusts unkeyed peers, a call without
    credentials counts as that of its `source_agent`. Raises Forbidden.
    """
    if ctx.caller.via != "local":
        return _authenticated(ctx, source_agent, project_id)
    check_canonical(source_agent, "source_agent")
    peer = peers.find(ctx.db, source_agent)
    is_keyed = mesh.is_known_by_key(ctx.db, source_agent, ctx.node.agent_id)
    if peer is None or peer.trust != "unkeyed" or is_keyed or not ctx.node.takes_unkeyed_peers:
        raise Forbidden(
            f"{source_agent} may not sync without a key: register it, or send its key",
            reason="unknown_peer",
        )
    check_not_deleted(ctx, peer.agent_id, project_id)
    # The change is the peer's own, so it is not sent back to it.
    caller = Caller(peer.agent_id, peer.repo_name or "", "unkeyed", "peer")
    return SendingPeer(replace(ctx, caller=caller), peer.agent_id, caller.repo, project_id)


def _authenticated(ctx: Context, source_agent: str, project_id: str) -> SendingPeer:
    caller = ctx.caller
    if not same_agent(caller.agent_id, source_agent):
        raise Forbidden(
            f"source_agent must be the caller, which is {caller.agent_id}",
            reason="source_agent_mismatch",
        )
    memo = ctx.transaction.memo if ctx.transaction is not None else {}
    is_mesh = memo.get(("mesh", caller.agent_id))
    if is_mesh is None:
        peer = peers.find(ctx.db, caller.agent_id)
        if peer is None:
            raise Forbidden(
                f"{caller.agent_id} is not a peer here: register it by POST /peers/register",
                reason="unknown_peer",
            )
        is_mesh = memo["mesh", caller.agent_id] = peer.secret is not None
    if not is_mesh:
        check_not_deleted(ctx, caller.agent_id, project_id)
    return SendingPeer(ctx, caller.agent_id, caller.repo, project_id, is_mesh)
