"""Projects that come from mesh peers: headers, repos and claims, joined with those here (§6).

Of two headers the later wins, of two descriptions of a repo the earlier; neither replaces one that
was signed by a node with higher authority (`server.methods.cacp.authority`).
"""

import orjson

from schemas.mesh import ProjectRegister, RepoRegister, Signature
from schemas.sync import ProjectSyncParams
from server.domain.agents import identity
from server.domain.endpoints import check_endpoint
from server.domain.errors import Refusal
from server.domain.identifiers import repo_id_for
from server.domain.registers import RepoClaim, Weight, is_released, later, settle
from server.methods.base import Context
from server.methods.cacp.authority import counts, weight_of_repo
from server.methods.sync.merge_register import RegisterMerge, RegisterRef
from server.methods.sync.peer_message import (
    UNCHANGED,
    MergeOutcome,
    PeerMessage,
    check_not_deleted,
)
from server.methods.sync.signer_check import SignerCheck, kept_of
from server.store import claims, projects
from server.store.projects import ProjectHeader, Repo


class ProjectMerge:
    """Merges the project that a message carries."""

    def __init__(self, message: PeerMessage) -> None:
        self._message = message
        self._signers = SignerCheck(message)
        self._registers = RegisterMerge(message, self._signers)
        self._ctx = message.ctx

    def project(self, params: ProjectSyncParams, register: ProjectRegister) -> MergeOutcome:
        """Join a project's registers with those here."""
        ctx, message, project_id = self._ctx, self._message, params.project.project_id
        known = projects.header(ctx.db, project_id)
        if known is None:
            check_not_deleted(ctx, message.source, project_id)
        sent = _header_of(ctx, project_id, register)
        signature = register.signature
        if signature is not None and not self._signers.accept(
            "header", project_id, sent.body(), None, signature
        ):
            changed = known is not None and self._join_repos(project_id, register)
            return MergeOutcome(created=False, changed=changed)
        is_due = message.is_due(register.stamp)
        if not is_due:
            # The repos of a known project don't wait for its header.
            rest = register if known is None else register.model_copy(update={"repos": []})
            waiting = params.model_copy(update={"registers": rest})
            message.defer_until_due("cacp/project/sync", waiting, register.stamp)
        if known is None and not is_due:
            return UNCHANGED
        if known is None:
            projects.insert(ctx.db, sent, [])
            message.see(sent.stamp)
            ctx.record("project", project_id, project_id, sent.status)
        # The claims come first: they decide who has authority over the header.
        changed = self._join_repos(project_id, register) or known is None
        if known is not None and is_due:
            changed |= self._join_header(known, sent, signature)
        return MergeOutcome(known is None, changed)

    def _join_header(
        self, known: ProjectHeader, sent: ProjectHeader, signature: Signature | None
    ) -> bool:
        """Join a header with the one here: the later one of a member, or of the founder, wins."""
        ctx, message, project_id = self._ctx, self._message, known.project_id
        standing = counts(ctx, known), counts(ctx, sent)
        if known.body() == sent.body():
            if standing == (False, True):
                projects.update_header(ctx.db, sent)
            return False
        if signature is not None:
            at, stored = (project_id, project_id), (known.body(), known.signature or None)
            self._signers.note_contradiction("header", at, stored, sent.body(), None, signature)
        states = _state_of(known), _state_of(sent)
        if not later(*states, standing):
            if later(*states):
                ctx.node.overruled[message.source] += 1
                node = "nobody" if signature is None else signature.node
                reason = f"its header is signed by {node}, which is not a member"
                message.skip("project", project_id, reason)
            return False
        projects.update_header(ctx.db, sent)
        message.see(sent.stamp)
        ctx.record("project", project_id, project_id, sent.status)
        return True

    def _join_repos(self, project_id: str, register: ProjectRegister) -> bool:
        """Join the repos. All claims come first: they decide who has authority over a repo."""
        ctx, message = self._ctx, self._message
        changed = False
        known = {repo.repo_id: repo for repo in projects.repos(ctx.db, project_id)}
        seen: set[str] = set()
        described: list[tuple[Repo, RepoRegister]] = []
        for repo in register.repos:
            if repo.repo_id != repo_id_for(project_id, repo.name):
                message.skip("repo", repo.repo_id, "its id does not match its project and name")
                continue
            if repo.repo_id in seen:
                message.skip("repo", repo.repo_id, "it is named twice in one message")
                continue
            seen.add(repo.repo_id)
            before = known.get(repo.repo_id)
            changed |= self._join_repo(project_id, repo, is_new=before is None)
            if before is not None:
                described.append((before, repo))
        for before, repo in described:
            sent = _repo_of(ctx, repo)
            changed |= self._join_description(project_id, before, sent, repo.signature)
        if changed:
            message.transaction.memo.clear()
            header = projects.header(ctx.db, project_id)
            assert header is not None
            ctx.record("project", project_id, project_id, header.status)
        return changed

    def _join_repo(self, project_id: str, register: RepoRegister, *, is_new: bool) -> bool:
        """Join a repo's claims, and add a repo that is new. Of two claims the earlier wins, so
        they are never deferred."""
        repo, signature = _repo_of(self._ctx, register), register.signature
        if is_new:
            if signature is not None and not self._signers.accept(
                "repo", project_id, repo.body(), None, signature
            ):
                return False
            projects.insert_repo(self._ctx.db, project_id, repo)
            self._message.see(repo.stamp)
        return self._join_claims(project_id, register) or is_new

    def _join_description(
        self, project_id: str, known: Repo, sent: Repo, signature: Signature | None
    ) -> bool:
        """Join a repo's description with the known one: the earlier wins."""

        def weight(kept: str | None) -> Weight:
            return weight_of_repo(self._ctx, project_id, known.repo_id, kept)

        ref = RegisterRef("repo", project_id, known.repo_id)
        if not self._registers.replaces(ref, known, sent, signature, weight):
            return False
        projects.update_repo(self._ctx.db, project_id, sent)
        self._message.see(sent.stamp)
        return known.body() != sent.body()

    def _join_claims(self, project_id: str, register: RepoRegister) -> bool:
        ctx, repo_id = self._ctx, register.repo_id
        known = claims.every(ctx.db, project_id, repo_id)
        before = {repr(claim.body()) for claim in known}
        added = []
        for sent in register.claims:
            claim = RepoClaim(
                sent.agent_id,
                sent.agent_endpoint,
                sent.claimed_at,
                sent.renewed_at,
                kept_of(ctx, sent.signature),
            )
            if repr(claim.body()) in before:
                continue
            self._note_two_claims(repo_id, known, claim, sent.signature)
            if self._may_claim(repo_id, claim, sent.signature):
                added.append(claim)
        if {repr(claim.body()) for claim in settle([*known, *added])} == before:
            return False
        settled = claims.settle(ctx.db, project_id, repo_id, [*known, *added])
        self._message.see(max(claim.renewed_at for claim in settled))
        ended = claims.releases(ctx.db, project_id, repo_id)
        rivals = [claim for claim in settled if not is_released(claim, ended)]
        if len(settled) > len(known) and len(rivals) > 1:
            ctx.record("conflict", repo_id, project_id, "claim_lost")
        return True

    def _may_claim(self, repo_id: str, claim: RepoClaim, signature: Signature) -> bool:
        try:
            if claim.agent_endpoint is not None:
                check_endpoint(claim.agent_endpoint, loopback_allowed=self._ctx.node.loopback)
        except Refusal as refusal:
            self._message.skip("repo", repo_id, refusal.message)
            return False
        return self._signers.accept("claim", repo_id, claim.body(), claim.agent_id, signature)

    def _note_two_claims(
        self, repo_id: str, known: list[RepoClaim], sent: RepoClaim, signature: Signature
    ) -> None:
        """Note a node that has signed two different claims of one agent with one stamp."""
        agent = identity(sent.agent_id)
        for claim in known:
            if identity(claim.agent_id) == agent:
                stored = claim.body(), claim.signature
                self._signers.note_contradiction(
                    "claim", (repo_id, agent), stored, sent.body(), sent.agent_id, signature
                )


def _state_of(header: ProjectHeader) -> tuple[str | int, ...]:
    """By what two headers are compared, the stamp first. Of equal stamps earlier releases decide by
    the members that they know."""
    policy = header.verification_policy
    return header.stamp, *header[1:6], *([] if policy == "word" else [policy])


def _header_of(ctx: Context, project_id: str, register: ProjectRegister) -> ProjectHeader:
    return ProjectHeader(
        project_id=project_id,
        name=register.name,
        objective=register.objective,
        status=register.status,
        agreement_policy=register.agreement_policy,
        verification_policy=register.verification_policy,
        created_at=register.created_at,
        stamp=register.stamp,
        signature="" if register.signature is None else kept_of(ctx, register.signature),
    )


def _repo_of(ctx: Context, register: RepoRegister) -> Repo:
    return Repo(
        repo_id=register.repo_id,
        name=register.name,
        role=register.role,
        language=register.language,
        relevant_paths=orjson.dumps(register.relevant_paths).decode(),
        url=register.url,
        stamp=register.stamp,
        signature="" if register.signature is None else kept_of(ctx, register.signature),
    )
