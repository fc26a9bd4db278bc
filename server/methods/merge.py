"""What peers of our own make send: facts and registers, joined with ours (design §6).

Each is checked for who vouches for it; what doesn't hold is passed over and named in the log
once. What is stamped too far ahead is deferred until it is due, and holds up nothing else.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import orjson
import structlog

from peers.clock import is_ahead, is_due
from peers.signing import verify
from schemas.base import iso, stamp_of
from schemas.context import ContextPacket
from schemas.facts import Fact, RoundFact, VersionFact
from schemas.file import FileFact, FileRequestFact
from schemas.file_mesh import FileRequestSyncParams, FileSyncParams
from schemas.mesh import ProjectRegister, RepoRegister, Signature, SignedFact
from schemas.sync import ContextSyncParams, ContractSyncParams, ProjectSyncParams
from server.domain import contract as domain
from server.domain.agents import same_agent
from server.domain.authorship import may_speak, statement
from server.domain.canonical import digest
from server.domain.endpoints import check_endpoint
from server.domain.errors import NotFound, Refusal
from server.domain.files import F, winner
from server.domain.identifiers import repo_id_for
from server.domain.registers import Claim, later, settle
from server.methods import homes
from server.methods.base import Context, open_project
from server.notices import name_once
from server.store import claims, contracts, files, mesh, packets, projects
from server.store.contracts import Header
from server.store.files import File, Request

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
        header = projects.header(ctx.db, project_id)
        is_due = self._is_due(register.stamp)
        if not is_due:
            bare = register if header is None else register.model_copy(update={"repos": []})
            waits = params.model_copy(update={"registers": bare})
            self._defer("cacp/project/sync", waits, register.stamp)
        if header is None and not is_due:
            return False, False
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
        merged = theirs if header is None else header
        if header is not None and is_due:
            merged = _joined_header(header, theirs)
        changed = merged != header
        if header is not None and changed:
            projects.update_header(ctx.db, merged)
        for repo in register.repos:
            changed |= self._repo(project_id, repo)
        if changed:
            assert ctx.transaction is not None
            ctx.transaction.memo.clear()
            self._see(merged.stamp)
            ctx.record("project", project_id, project_id, merged.status)
        return header is None, changed

    def _repo(self, project_id: str, theirs: RepoRegister) -> bool:
        """Join a repo and its claims. Of those the earlier stay, so they are never deferred."""
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
            self._see(said.stamp)
            changed = True
        elif later((said.stamp, *said[:6]), (repo.stamp, *repo[:6])):
            # Of one repo added twice the earlier stays.
            projects.update_repo(ctx.db, project_id, said)
            changed = True
        return self._claims(project_id, theirs) or changed

    def _claims(self, project_id: str, theirs: RepoRegister) -> bool:
        ctx, repo_id = self.ctx, theirs.repo_id
        ours = claims.every(ctx.db, project_id, repo_id)
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
        self._see(max(claim.renewed_at for claim in settled))
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

        A fact whose claim must come first is passed over (`kind` is claim): its sender brings that
        next. Raises NotFound for an unknown project, or when no fact is left.
        """
        ctx, contract_id = self.ctx, params.contract.contract_id
        self._open_project(params.project_id)
        known = contracts.project_of(ctx.db, contract_id)
        if known not in (None, params.project_id):
            self._skip("contract", contract_id, "that contract is of another project")
            return False, False
        facts = {} if known is None else contracts.facts_of(ctx.db, contract_id)
        fresh = [one for one in _one_each(sent) if _is_news(facts, one.fact)]
        claimed = [one for one in fresh if self._is_claimed(params.project_id, one)]
        for fact in (one.fact for one in fresh if one not in claimed):
            assert not isinstance(fact, RoundFact)
            lacking = _no_claim(params.project_id, fact.repo_id, fact.agent_id)
            if not claimed:
                raise lacking
            self._skip("claim", fact.repo_id, lacking.message)
        due = [one for one in claimed if self._is_due(one.fact.stamp)]
        for one in claimed:
            if one not in due:
                alone = params.model_copy(update={"facts": [one]})
                self._defer("cacp/contract/sync", alone, one.fact.stamp)
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
        created, lowered = header is None, False
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
        elif created_at < header.created_at:
            # Two nodes made it from one that a foreign peer told both of: the first made it.
            header = header._replace(created_at=created_at)
            contracts.renew_copy(ctx.db, params.project_id, contract_id, header, facts)
            lowered = True
        if not new and not lowered:
            return False, False
        if created and len(new) == 1:
            self._see(new[0].stamp)
            ctx.record("contract", contract_id, params.project_id, "proposed")
            return True, True
        joined = contracts.add(
            ctx.db, params.project_id, contract_id, header, facts, new, signatures
        )
        if not created and not lowered and joined == facts:
            return False, False
        self._see(max((fact.stamp for fact in new), default=0))
        ctx.record("contract", contract_id, params.project_id, domain.status_of(joined))
        if domain.has_lost(facts, joined):
            ctx.record("conflict", contract_id, params.project_id, "version_lost")
        return created, True

    def _is_claimed(self, project_id: str, sent: SignedFact) -> bool:
        """Whether the fact's agent has claimed the fact's repo here."""
        fact = sent.fact
        if isinstance(fact, RoundFact) or self._has_claimed(
            project_id, fact.repo_id, fact.agent_id
        ):
            return True
        holder = claims.holder(self.ctx.db, project_id, fact.repo_id)
        return sent.signature.unkeyed and holder is None

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
            self._defer("cacp/context/sync", params, stamp)
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
            raise _no_claim(params.project_id, theirs.from_repo, theirs.from_agent)
        body = packet.model_dump()
        if not self._vouched("packet", params.project_id, body, packet.from_agent, signature):
            return False
        packets.insert(ctx.db, params.project_id, packet, _kept(ctx, signature))
        self._see(stamp)
        ctx.record("context", packet.packet_id, params.project_id, packet.type)
        return True

    # --- files --------------------------------------------------------------------------------

    def file(self, params: FileSyncParams) -> tuple[bool, bool]:
        """Take what a file is: (created, changed). Raises NotFound as `context` does."""
        ctx, project_id, theirs = self.ctx, params.project_id, params.file
        self._open_project(project_id)
        known = files.find(ctx.db, project_id, theirs.file_id)
        if known is not None and self._stays("file", theirs.file_id, known.fact(), theirs):
            return False, False
        if not self._file_holds("cacp/file/sync", "file", params, theirs, theirs.from_repo):
            return False, False
        files.put(ctx.db, project_id, File.of(theirs, _kept(ctx, params.signature)))
        self._see(theirs.stamp)
        ctx.record("file", theirs.file_id, project_id, "received")
        asked = theirs.fulfils and files.request(ctx.db, project_id, theirs.fulfils)
        if asked:
            ctx.record("file_request", asked.request_id, project_id, "fulfilled")
        return known is None, True

    def file_request(self, params: FileRequestSyncParams) -> tuple[bool, bool]:
        """Take a request for a file: (created, changed). Raises NotFound as `context` does."""
        ctx, project_id, theirs = self.ctx, params.project_id, params.request
        self._open_project(project_id)
        known = files.request(ctx.db, project_id, theirs.request_id)
        kind = "file_request"
        if known is not None and self._stays(kind, theirs.request_id, known.fact(), theirs):
            return False, False
        if not self._file_holds("cacp/file/syncRequest", kind, params, theirs, theirs.requested_by):
            return False, False
        asked = Request.of(theirs, _kept(ctx, params.signature))
        files.put_request(ctx.db, project_id, asked)
        self._see(theirs.stamp)
        done = files.fulfilled_by(ctx.db, project_id, theirs.request_id) is not None
        ctx.record(kind, theirs.request_id, project_id, "fulfilled" if done else "open")
        return known is None, True

    def _stays(self, kind: str, id: str, ours: F, theirs: F) -> bool:
        """Whether what is known of an id stays. Two facts of one id are named in the log."""
        if ours == theirs:
            return True
        self._skip(kind, id, "that id is taken: of the two the earlier stays")
        return winner(ours, theirs) == ours

    def _file_holds(
        self,
        method: str,
        kind: str,
        params: FileSyncParams | FileRequestSyncParams,
        theirs: FileFact | FileRequestFact,
        repo_id: str,
    ) -> bool:
        """Whether it is due, and its author's node has signed it."""
        if not self._is_due(theirs.stamp):
            self._defer(method, params, theirs.stamp)
            return False
        if not self._has_claimed(params.project_id, repo_id, theirs.from_agent):
            raise _no_claim(params.project_id, repo_id, theirs.from_agent)
        body = theirs.model_dump()
        return self._vouched(kind, params.project_id, body, theirs.from_agent, params.signature)

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
        ctx = self.ctx
        return is_due(stamp, ctx.now, ctx.node.future_limit) or is_due(
            stamp, mesh.accepted(ctx.db), ctx.node.future_limit
        )

    def _defer(self, method: str, params: Any, stamp: int) -> None:
        text = params.model_dump_json(by_alias=True)
        message = mesh.Aside(digest(orjson.loads(text)), self._source, method, text)
        if mesh.put_aside(self.ctx.db, message, stamp - self.ctx.node.future_limit):
            log.warning("deferred", peer=self._source, method=method, stamped=iso(stamp))
        self.skipped.append({"kind": method, "id": "", "reason": "deferred until it is due"})

    def _see(self, stamp: int) -> None:
        """What is written here from now on is stamped after this, but not after a wrong clock."""
        transaction = self.ctx.transaction
        assert transaction is not None
        transaction.stored = max(transaction.stored, stamp)
        if not is_ahead(stamp, transaction.now):
            transaction.seen = max(transaction.seen, stamp)

    def _skip(self, kind: str, id: str, reason: str) -> None:
        self.skipped.append({"kind": kind, "id": id, "reason": reason})
        name_once("refused_from_peer", peer=self._source, kind=kind, id=id, reason=reason)


def _no_claim(project_id: str, repo_id: str, agent_id: str) -> NotFound:
    return NotFound(
        f"{agent_id} has no claim here on repo {repo_id}: send the project first",
        kind="claim",
        projectId=project_id,
    )


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
