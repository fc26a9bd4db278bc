"""Projects that come from mesh peers: headers, repos and claims, joined with ours (§6).

A header is a register of which the later stamp stays, what a repo is one of which the earlier does;
both give way to no word of less weight (`server.methods.cacp.authority`).
"""

import orjson

from schemas.mesh import ProjectRegister, RepoRegister, Signature
from schemas.sync import ProjectSyncParams
from server.domain.agents import identity
from server.domain.endpoints import check_endpoint
from server.domain.errors import Refusal
from server.domain.identifiers import repo_id_for
from server.domain.registers import RepoClaim, later, settle
from server.methods.base import Context
from server.methods.cacp.authority import counts, weight_of_repo
from server.methods.sync.merge import FactMerge, kept_of
from server.store import claims, projects


class ProjectMerge(FactMerge):
    """One message that carries a project."""

    def project(self, params: ProjectSyncParams, register: ProjectRegister) -> tuple[bool, bool]:
        """Join a project's registers with ours: (created, changed)."""
        ctx, project_id = self.ctx, params.project.project_id
        header = projects.header(ctx.db, project_id)
        theirs = _header_of(ctx, project_id, register)
        by = register.signature
        if by is not None and not self._vouched("header", project_id, theirs.body(), None, by):
            return False, header is not None and self._repos(project_id, register)
        is_due = self._is_due(register.stamp)
        if not is_due:
            bare = register if header is None else register.model_copy(update={"repos": []})
            waits = params.model_copy(update={"registers": bare})
            self._defer("cacp/project/sync", waits, register.stamp)
        if header is None and not is_due:
            return False, False
        if header is None:
            projects.insert(ctx.db, theirs, [])
            self._see(theirs.stamp)
            ctx.record("project", project_id, project_id, theirs.status)
        # The claims first: they say whose word of the header counts.
        changed = self._repos(project_id, register) or header is None
        if header is not None and is_due:
            changed |= self._header(header, theirs, by)
        return header is None, changed

    def _header(
        self, ours: projects.ProjectHeader, theirs: projects.ProjectHeader, by: Signature | None
    ) -> bool:
        """Join a header with ours: of who has standing in the project, the last writer's stays."""
        ctx, project_id = self.ctx, ours.project_id
        standing = counts(ctx, ours), counts(ctx, theirs)
        if ours.body() == theirs.body():
            if standing == (False, True):
                projects.update_header(ctx.db, theirs)
            return False
        if by is not None:
            at, held = (project_id, project_id), (ours.body(), ours.signature or None)
            self._compare("header", at, held, theirs.body(), None, by)
        if not later((ours.stamp, *ours[1:6]), (theirs.stamp, *theirs[1:6]), standing):
            if later((ours.stamp, *ours[1:6]), (theirs.stamp, *theirs[1:6])):
                ctx.node.overruled[self._source] += 1
                who = "nobody" if by is None else by.node
                self._skip("project", project_id, f"its header is signed by {who}, no member of it")
            return False
        projects.update_header(ctx.db, theirs)
        self._see(theirs.stamp)
        ctx.record("project", project_id, project_id, theirs.status)
        return True

    def _repos(self, project_id: str, register: ProjectRegister) -> bool:
        """Join the repos: the claims of all first, for they say whose word of a repo counts."""
        changed = False
        known = {repo.repo_id: repo for repo in projects.repos(self.ctx.db, project_id)}
        named: set[str] = set()
        described: list[tuple[projects.Repo, RepoRegister]] = []
        for theirs in register.repos:
            if theirs.repo_id != repo_id_for(project_id, theirs.name):
                self._skip("repo", theirs.repo_id, "its id is not that of its project and name")
                continue
            if theirs.repo_id in named:
                self._skip("repo", theirs.repo_id, "it is named twice in one message")
                continue
            named.add(theirs.repo_id)
            ours = known.get(theirs.repo_id)
            changed |= self._repo(project_id, theirs, is_new=ours is None)
            if ours is not None:
                described.append((ours, theirs))
        for ours, theirs in described:
            changed |= self._described(
                project_id, ours, _repo_of(self.ctx, theirs), theirs.signature
            )
        if changed:
            assert self.ctx.transaction is not None
            self.ctx.transaction.memo.clear()
            header = projects.header(self.ctx.db, project_id)
            assert header is not None
            self.ctx.record("project", project_id, project_id, header.status)
        return changed

    def _repo(self, project_id: str, theirs: RepoRegister, *, is_new: bool) -> bool:
        """Join a repo's claims, and the repo where it is new. Of claims the earlier stay, so they
        are never deferred."""
        ctx, said, by = self.ctx, _repo_of(self.ctx, theirs), theirs.signature
        if is_new:
            if by is not None and not self._vouched("repo", project_id, said.body(), None, by):
                return False
            projects.insert_repo(ctx.db, project_id, said)
            self._see(said.stamp)
        return self._claims(project_id, theirs) or is_new

    def _described(
        self,
        project_id: str,
        ours: projects.Repo,
        theirs: projects.Repo,
        by: Signature | None,
    ) -> bool:
        """Join what a repo is with ours. Of one that was added twice the earlier stays."""

        def weight(kept: str | None) -> int:
            return weight_of_repo(self.ctx, project_id, ours.repo_id, kept)

        at = (project_id, ours.repo_id)
        if not self._yields("repo", at, ours, theirs, by, weight):
            return False
        projects.update_repo(self.ctx.db, project_id, theirs)
        self._see(theirs.stamp)
        return ours.body() != theirs.body()

    def _claims(self, project_id: str, theirs: RepoRegister) -> bool:
        ctx, repo_id = self.ctx, theirs.repo_id
        ours = claims.every(ctx.db, project_id, repo_id)
        before = {repr(claim.body()) for claim in ours}
        found = []
        for one in theirs.claims:
            kept = kept_of(ctx, one.signature)
            claim = RepoClaim(
                one.agent_id, one.agent_endpoint, one.claimed_at, one.renewed_at, kept
            )
            if repr(claim.body()) in before:
                continue
            self._contradicts_claim(repo_id, ours, claim, one.signature)
            if self._may_claim(repo_id, claim, one.signature):
                found.append(claim)
        settled = settle([*ours, *found])
        if {repr(claim.body()) for claim in settled} == before:
            return False
        claims.settle(ctx.db, project_id, repo_id, settled)
        self._see(max(claim.renewed_at for claim in settled))
        if len(settled) > len(ours) and len(settled) > 1:
            ctx.record("conflict", repo_id, project_id, "claim_lost")
        return True

    def _may_claim(self, repo_id: str, claim: RepoClaim, signature: Signature) -> bool:
        try:
            if claim.agent_endpoint is not None:
                check_endpoint(claim.agent_endpoint, loopback_allowed=self.ctx.node.loopback)
        except Refusal as refusal:
            self._skip("repo", repo_id, refusal.message)
            return False
        return self._vouched("claim", repo_id, claim.body(), claim.agent_id, signature)

    def _contradicts_claim(
        self, repo_id: str, ours: list[RepoClaim], theirs: RepoClaim, by: Signature
    ) -> None:
        """Name who has claimed one repo for one agent twice with one stamp, differently."""
        who = identity(theirs.agent_id)
        for known in ours:
            if identity(known.agent_id) == who:
                held = known.body(), known.signature
                at = repo_id, who
                self._compare("claim", at, held, theirs.body(), theirs.agent_id, by)


def _header_of(ctx: Context, project_id: str, said: ProjectRegister) -> projects.ProjectHeader:
    return projects.ProjectHeader(
        project_id=project_id,
        name=said.name,
        objective=said.objective,
        status=said.status,
        agreement_policy=said.agreement_policy,
        created_at=said.created_at,
        stamp=said.stamp,
        signature="" if said.signature is None else kept_of(ctx, said.signature),
    )


def _repo_of(ctx: Context, said: RepoRegister) -> projects.Repo:
    return projects.Repo(
        repo_id=said.repo_id,
        name=said.name,
        role=said.role,
        language=said.language,
        relevant_paths=orjson.dumps(said.relevant_paths).decode(),
        url=said.url,
        stamp=said.stamp,
        signature="" if said.signature is None else kept_of(ctx, said.signature),
    )
