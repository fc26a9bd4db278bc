"""What peers of our own make send: facts and registers, joined with ours (design §6).

Each is checked for who vouches for it; what doesn't hold is passed over and named in the log
once. What is stamped too far ahead is put aside until it is due.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import orjson
import structlog

from peers.clock import is_due
from peers.signing import verify
from schemas.base import iso, stamp_of
from schemas.context import ContextPacket
from schemas.facts import Fact, RoundFact, VersionFact
from schemas.mesh import ProjectRegister, RepoRegister, Signature, SignedFact
from schemas.sync import ContextSyncParams, ContractSyncParams, ProjectSyncParams
from server.domain import contract as domain
from server.domain.agents import same_agent
from server.domain.authorship import may_speak, statement
from server.domain.canonical import digest
from server.domain.endpoints import check_endpoint
from server.domain.errors import NotFound, Refusal
from server.domain.identifiers import repo_id_for
from server.domain.registers import Claim, later, settle
from server.methods import homes
from server.methods.base import Context, open_project
from server.notices import name_once
from server.store import claims, contracts, mesh, packets, projects
from server.store.contracts import Header

log = structlog.get_logger()
Skipped = dict[str, Any]
T = TypeVar("T")


class Inbox:
    """One message of a peer of our own make. `source` is its agent id."""

    def __init__(self, ctx: Context, source: str, introduced: dict[str, str]) -> None:
        self._introduced = introduced
        self._source = source
        self.ctx = Context(
            ctx.db, ctx.caller, ctx.node, ctx.method, ctx.stamp, ctx.transaction, source
        )
        self.skipped: list[Skipped] = []

    # --- projects -----------------------------------------------------------------------------

    def project(self, params: ProjectSyncParams, register: ProjectRegister) -> tuple[bool, bool]:
        """Join a project's registers with ours: (created, changed)."""
        ctx, project_id = self.ctx, params.project.project_id
        stamps = [register.stamp, *(repo.stamp for repo in register.repos)]
        stamps += [claim.renewed_at for repo in register.repos for claim in repo.claims]
        if not self._is_due(max(stamps)):
            self._put_aside("cacp/project/sync", params, max(stamps))
            return False, False
        header = projects.header(ctx.db, project_id)
        theirs = projects.Header(
            project_id=project_id,
            name=register.name,
            objective=register.objective,
            status=register.status,
            agreement_policy=register.agreement_policy,
            created_at=register.created_at,
            stamp=register.stamp,
        )
        if header is None:
            projects.insert(ctx.db, theirs, [])
        merged = theirs if header is None else _joined_header(header, theirs)
        changed = merged != header
        if header is not None and changed:
            projects.update_header(ctx.db, merged)
        for repo in register.repos:
            changed |= self._repo(project_id, repo)
        if changed:
            assert ctx.transaction is not None
            ctx.transaction.memo.clear()
            self._see(max(stamps))
            ctx.record("project", project_id, project_id, merged.status)
        return header is None, changed

    def _repo(self, project_id: str, theirs: RepoRegister) -> bool:
        ctx = self.ctx
        if theirs.repo_id != repo_id_for(project_id, theirs.name):
            self._skip("repo", theirs.repo_id, "its id is not that of its project and name")
            return False
        known = {repo.repo_id: repo for repo in projects.repos(ctx.db, project_id)}
        repo = known.get(theirs.repo_id)
        said = projects.Repo(
            repo_id=theirs.repo_id,
            name=theirs.name,
            role=theirs.role,
            language=theirs.language,
            relevant_paths=orjson.dumps(theirs.relevant_paths).decode(),
            url=theirs.url,
            stamp=theirs.stamp,
        )
        changed = False
        if repo is None:
            projects.insert_repo(ctx.db, project_id, said)
            changed = True
        elif later((said.stamp, *said[:6]), (repo.stamp, *repo[:6])):
            # Of one repo added twice the earlier stays.
            projects.update_repo(ctx.db, project_id, said)
            changed = True
        return self._claims(project_id, theirs) or changed

    def _claims(self, project_id: str, theirs: RepoRegister) -> bool:
        ctx, repo_id = self.ctx, theirs.repo_id
        held = claims.holder(ctx.db, project_id, repo_id)
        ours = [*([held] if held else []), *claims.lost(ctx.db, project_id, repo_id)]
        before = {repr(claim.body()) for claim in ours}
        found = []
        for one in theirs.claims:
            kept = _kept(ctx, one.signature)
            claim = Claim(one.agent_id, one.agent_endpoint, one.claimed_at, one.renewed_at, kept)
            if repr(claim.body()) in before:
                continue
            if self._may_claim(repo_id, claim, one.signature):
                found.append(claim)
        settled = settle([*ours, *found])
        if {repr(claim.body()) for claim in settled} == before:
            return False
        claims.settle(ctx.db, project_id, repo_id, settled)
        if len(settled) > len(ours) and len(settled) > 1:
            ctx.record("conflict", repo_id, project_id, "claim_lost")
        return True

    def _may_claim(self, repo_id: str, claim: Claim, signature: Signature) -> bool:
        try:
            if claim.agent_endpoint is not None:
                check_endpoint(claim.agent_endpoint, loopback_allowed=self.ctx.node.loopback)
        except Refusal as refusal:
            self._skip("repo", repo_id, refusal.message)
            return False
        return self._vouched("claim", repo_id, claim.body(), claim.agent_id, signature)

    # --- contracts ----------------------------------------------------------------------------

    def contract(self, params: ContractSyncParams, sent: list[SignedFact]) -> tuple[bool, bool]:
        """Join a contract's facts with ours: (created, changed).

        Raises NotFound for an unknown project, or a claim that must come first.
        """
        ctx, contract_id = self.ctx, params.contract.contract_id
        self._open_project(params.project_id)
        known = contracts.project_of(ctx.db, contract_id)
        if known not in (None, params.project_id):
            self._skip("contract", contract_id, "that contract is of another project")
            return False, False
        facts = {} if known is None else contracts.facts_of(ctx.db, contract_id)
        fresh = [one for one in _one_each(sent) if _is_news(facts, one.fact)]
        for one in fresh:
            self._check_claim(params.project_id, one)
        due = [one for one in fresh if self._is_due(one.fact.stamp)]
        if len(due) < len(fresh):
            ahead = [one for one in fresh if one not in due]
            self._put_aside(
                "cacp/contract/sync",
                params.model_copy(update={"facts": ahead}),
                max(one.fact.stamp for one in ahead),
            )
        good = [one for one in due if self._holds(contract_id, one)]
        return self._join(params, facts, good)

    def _join(
        self, params: ContractSyncParams, facts: domain.Facts, good: list[SignedFact]
    ) -> tuple[bool, bool]:
        ctx, contract_id = self.ctx, params.contract.contract_id
        signatures: dict[domain.FactKey, str] = {
            (one.fact.kind, one.fact.key): kept
            for one in good
            if (kept := _kept(ctx, one.signature)) is not None
        }
        new: list[Fact] = [one.fact for one in good]
        header = contracts.header_of(ctx.db, params.project_id, contract_id) if facts else None
        created_at = params.created_at or min((fact.stamp for fact in new), default=ctx.stamp)
        created = header is None
        if header is None:
            first = next((fact for fact in new if isinstance(fact, VersionFact)), None)
            if first is None:
                if new:
                    self._skip("contract", contract_id, "it has no version that holds")
                return False, False
            header = Header(params.contract.type, params.contract.name, created_at)
            contracts.insert(
                ctx.db,
                params.project_id,
                contract_id,
                header,
                first,
                signatures.get((first.kind, first.key)),
            )
            facts = {(first.kind, first.key): first}
        elif new:
            contracts.lower_created_at(ctx.db, params.project_id, contract_id, created_at)
        if not new:
            return False, False
        if created and len(new) == 1:
            self._see(new[0].stamp)
            ctx.record("contract", contract_id, params.project_id, "proposed")
            return True, True
        lost = {fact.key for fact in domain.conflicts_of(facts)}
        joined = contracts.add(
            ctx.db, params.project_id, contract_id, header, facts, new, signatures
        )
        if not created and joined == facts:
            return False, False
        self._see(max(fact.stamp for fact in new))
        ctx.record("contract", contract_id, params.project_id, domain.status_of(joined))
        if {fact.key for fact in domain.conflicts_of(joined)} - lost:
            ctx.record("conflict", contract_id, params.project_id, "version_lost")
        return created, True

    def _check_claim(self, project_id: str, sent: SignedFact) -> None:
        """Raises NotFound unless the fact's agent has claimed the fact's repo here."""
        fact = sent.fact
        if isinstance(fact, RoundFact):
            return
        db = self.ctx.db
        if self._has_claimed(project_id, fact.repo_id, fact.agent_id):
            return
        if sent.signature.unkeyed and claims.holder(db, project_id, fact.repo_id) is None:
            return
        raise NotFound(
            f"{fact.agent_id} has no claim here on repo {fact.repo_id}: send the project first",
            kind="claim",
            projectId=project_id,
        )

    def _holds(self, contract_id: str, sent: SignedFact) -> bool:
        fact = sent.fact
        if isinstance(fact, VersionFact) and digest(fact.content) != fact.digest:
            self._skip("contract", contract_id, "a version whose digest is not its content's")
            return False
        author = None if isinstance(fact, RoundFact) else fact.agent_id
        body = orjson.loads(orjson.dumps(fact))
        return self._vouched("fact", contract_id, body, author, sent.signature)

    # --- context ------------------------------------------------------------------------------

    def context(self, params: ContextSyncParams, signature: Signature) -> bool:
        """Take a packet that is unknown here. Raises NotFound for an unknown project."""
        ctx, theirs = self.ctx, params.packet
        self._open_project(params.project_id)
        if packets.exists(ctx.db, params.project_id, theirs.packet_id):
            return False
        stamp = stamp_of(theirs.timestamp)
        if not self._is_due(stamp):
            self._put_aside("cacp/context/sync", params, stamp)
            return False
        packet = ContextPacket.model_construct(
            packet_id=theirs.packet_id,
            from_repo=theirs.from_repo,
            from_agent=theirs.from_agent,
            timestamp=iso(stamp),
            type=theirs.type,
            content=theirs.content,
            related_contracts=theirs.related_contracts or [],
            reply_to=theirs.reply_to,
        )
        if (
            not self._has_claimed(params.project_id, theirs.from_repo, theirs.from_agent)
            and not signature.unkeyed
        ):
            raise NotFound(
                f"{theirs.from_agent} has no claim here on repo {theirs.from_repo}: "
                "send the project first",
                kind="claim",
                projectId=params.project_id,
            )
        body = packet.model_dump()
        if not self._vouched("packet", params.project_id, body, packet.from_agent, signature):
            return False
        packets.insert(ctx.db, params.project_id, packet, ctx.stamp, _kept(ctx, signature))
        self._see(stamp)
        ctx.record("context", packet.packet_id, params.project_id, packet.type)
        return True

    # --- trust and time -----------------------------------------------------------------------

    def _vouched(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, by: Signature
    ) -> bool:
        """Whether the node that signed did, and may speak for the author."""
        ctx = self.ctx
        known = self._once(("key", by.node), lambda: mesh.node_key(ctx.db, by.node))
        public = self._key_of(by.node, known)
        if public is None:
            self._skip(kind, place, f"nobody here knows the key of {by.node}")
            return False
        if not verify(public, statement(kind, place, body), by.value, by.path):
            self._skip(kind, place, f"the signature is not that of {by.node}")
            return False
        if author is not None and not same_agent(author, by.node):
            heard = ("home", author, by.node, str(by.unkeyed))
            if not self._once(heard, lambda: self._speaks_for(author, by)):
                self._skip(kind, place, f"{by.node} doesn't speak for {author}")
                return False
        if known is None and not same_agent(by.node, ctx.node.agent_id):
            mesh.pin(ctx.db, by.node, public, introduced_by=self._source)
        return True

    def _speaks_for(self, author: str, by: Signature) -> bool:
        """Whether the node that signed may speak for an agent."""
        home = homes.home_of(self.ctx, author)
        return may_speak(by, author, author_is_node=_is_node(self.ctx, author), home=home)

    def _open_project(self, project_id: str) -> None:
        self._once(("project", project_id), lambda: open_project(self.ctx, project_id))

    def _has_claimed(self, project_id: str, repo_id: str, agent_id: str) -> bool:
        return self._once(
            ("claim", project_id, repo_id, agent_id),
            lambda: claims.claimed_by(self.ctx.db, project_id, repo_id, agent_id),
        )

    def _once(self, at: tuple[str, ...], look: Callable[[], T]) -> T:
        """What was looked up before in this transaction, if it was found."""
        assert self.ctx.transaction is not None
        memo = self.ctx.transaction.memo
        if at not in memo:
            found = look()
            if not found:
                return found
            memo[at] = found
        return memo[at]  # type: ignore[no-any-return]

    def _key_of(self, node: str, known: mesh.NodeKey | None) -> str | None:
        if same_agent(node, self.ctx.node.agent_id):
            return self.ctx.node.key.public
        if known is not None:
            return known.public_key
        # An agent that is at home somewhere is no node, whoever introduces a key of its name.
        return None if homes.home_of(self.ctx, node) else self._introduced.get(node)

    def _is_due(self, stamp: int) -> bool:
        assert self.ctx.transaction is not None
        return is_due(stamp, self.ctx.transaction.now, self.ctx.node.future_limit)

    def _put_aside(self, method: str, params: Any, stamp: int) -> None:
        text = params.model_dump_json(by_alias=True)
        message = mesh.Aside(digest(orjson.loads(text)), self._source, method, text)
        if mesh.put_aside(self.ctx.db, message, stamp - self.ctx.node.future_limit):
            log.warning("put_aside", peer=self._source, method=method, due=iso(stamp))
        self.skipped.append({"kind": method, "id": "", "reason": "put aside until it is due"})

    def _see(self, stamp: int) -> None:
        """What is written here from now on is stamped after this."""
        assert self.ctx.transaction is not None
        self.ctx.transaction.seen = max(self.ctx.transaction.seen, stamp)

    def _skip(self, kind: str, id: str, reason: str) -> None:
        self.skipped.append({"kind": kind, "id": id, "reason": reason})
        name_once("refused_from_peer", peer=self._source, kind=kind, id=id, reason=reason)


def _kept(ctx: Context, signature: Signature) -> str | None:
    """A signature as the store keeps it: of what this node itself says, none."""
    if same_agent(signature.node, ctx.node.agent_id):
        return None
    return signature.model_dump_json()


def _joined_header(ours: projects.Header, theirs: projects.Header) -> projects.Header:
    created_at = min(ours.created_at, theirs.created_at)
    wins = later((ours.stamp, *ours[1:5]), (theirs.stamp, *theirs[1:5]))
    return (theirs if wins else ours)._replace(created_at=created_at)


def _is_news(facts: domain.Facts, fact: Fact) -> bool:
    known = facts.get((fact.kind, fact.key))
    return known is None or (known != fact and domain.winner(known, fact) == fact)


def _is_node(ctx: Context, author: str | None) -> bool:
    if author is None:
        return False
    return same_agent(author, ctx.node.agent_id) or mesh.node_key(ctx.db, author) is not None


def _one_each(sent: Iterable[SignedFact]) -> list[SignedFact]:
    """One fact for each key, the first of those that came."""
    return list({(one.fact.kind, one.fact.key): one for one in reversed(list(sent))}.values())
