"""cacp/project/syncState: the lifecycle of a project and released claims, from mesh peers (design
§7)."""

from typing import Any

from schemas.lifecycle_mesh import LifecycleRegister, ProjectStateSyncParams, ReleaseRegister
from schemas.sync import SyncResult
from server.domain.agents import identity, same_agent
from server.domain.authorship import signer_of
from server.domain.lifecycle import Lifecycle, may_set, replaces
from server.domain.registers import ClaimRelease, may_release, order_of
from server.methods.base import Context, writes
from server.methods.cacp.authority import has_standing
from server.methods.cacp.lifecycle import apply
from server.methods.sync.digest import check_source
from server.methods.sync.entity_sync import result_of
from server.methods.sync.peer_message import UNCHANGED, MergeOutcome, PeerMessage
from server.methods.sync.signer_check import SignerCheck, kept_of
from server.store import claims, lifecycle, projects


@writes("cacp/project/syncState", ProjectStateSyncParams, SyncResult, access="sync", large=True)
def sync_state(ctx: Context, params: ProjectStateSyncParams) -> dict[str, Any]:
    """Take from a mesh peer whether a project is archived or deleted, and which of its repos were
    released."""
    check_source(ctx, params.source_agent)
    message = PeerMessage(ctx, ctx.caller.agent_id, params.keys)
    return result_of(message.skipped, *ProjectStateMerge(message).state(params))


class ProjectStateMerge:
    """Merges the lifecycle and the releases that a message carries."""

    def __init__(self, message: PeerMessage) -> None:
        self._message = message
        self._signers = SignerCheck(message)
        self._ctx = message.ctx

    def state(self, params: ProjectStateSyncParams) -> MergeOutcome:
        """Join a project's lifecycle and releases with those here. A deletion needs nothing else of
        the project; the rest follows on the project's claims."""
        ctx, message, project_id = self._ctx, self._message, params.project_id
        register = params.state.lifecycle
        stamps = [release.released_at for release in params.state.releases]
        newest = max([*stamps, register.stamp if register is not None else 0])
        if not message.is_due(newest):
            message.defer_until_due("cacp/project/syncState", params, newest)
            return UNCHANGED
        changed = register is not None and self._join_lifecycle(project_id, register)
        known = lifecycle.find(ctx.db, project_id)
        if known is None or not known.is_deleted:
            for release in params.state.releases:
                changed |= self._join_release(project_id, release)
        if changed:
            message.see(newest)
            message.transaction.memo.clear()
        return MergeOutcome(created=False, changed=changed)

    def _join_lifecycle(self, project_id: str, register: LifecycleRegister) -> bool:
        ctx, signature = self._ctx, register.signature
        kept = kept_of(ctx, signature)
        sent = Lifecycle(register.state, register.name, register.by, register.stamp, kept)
        if not replaces(lifecycle.find(ctx.db, project_id), sent):
            return False
        if not sent.is_deleted and projects.header(ctx.db, project_id) is None:
            self._message.skip("project", project_id, "the project is unknown here")
            return False
        if not self._signers.accept("lifecycle", project_id, sent.body(), None, signature):
            return False
        standing = has_standing(ctx, project_id, signature.node)
        if not may_set(sent.state, project_id, signature.node, has_standing=standing):
            ctx.node.overruled[self._message.source] += 1
            reason = f"{signature.node}, which signed it, may not make the project {sent.state}"
            self._message.skip("project", project_id, reason)
            return False
        apply(ctx, project_id, sent)
        return True

    def _join_release(self, project_id: str, register: ReleaseRegister) -> bool:
        ctx, repo_id, signature = self._ctx, register.repo_id, register.signature
        agent, kept = identity(register.agent_id), kept_of(ctx, signature)
        sent = ClaimRelease(agent, register.by, register.released_at, kept)
        if any(
            same_agent(node, signature.node)
            and known.agent_id == agent
            and order_of(known) >= order_of(sent)
            for node, known in claims.stated_releases(ctx.db, project_id, repo_id)
        ):
            return False
        claim = next(
            (
                claim
                for claim in claims.every(ctx.db, project_id, repo_id)
                if same_agent(claim.agent_id, agent)
            ),
            None,
        )
        if claim is None:
            self._message.skip("repo", repo_id, f"{agent}, which is released, has no claim on it")
            return False
        if not self._signers.accept("release", repo_id, sent.body(), None, signature):
            return False
        through = signer_of(claim.signature, ctx.node.agent_id)
        if not may_release(project_id, signature.node, through):
            ctx.node.overruled[self._message.source] += 1
        # Kept in any case: it counts, here as everywhere, once that node's claim of the agent does.
        claims.state_release(ctx.db, project_id, repo_id, signature.node, sent)
        ctx.record("repo", repo_id, project_id, "released")
        return True
