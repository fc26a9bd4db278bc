"""What mesh peers send: facts and registers, joined with ours (design §7).

Each is checked for who vouches for it; what doesn't hold is passed over and named in the log
once. What is stamped too far ahead is deferred until it is due, and holds up nothing else.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import orjson

from peers.clock import is_ahead, is_due
from peers.signing import verify
from schemas.base import iso
from schemas.facts import Fact, RoundFact, VersionFact
from schemas.mesh import Signature, SignedFact
from schemas.sync import ContractSyncParams
from server.domain import contract as domain
from server.domain.agents import same_agent
from server.domain.authorship import may_speak, statement
from server.domain.canonical import digest
from server.domain.equivocation import at_one_time
from server.domain.errors import NotFound
from server.domain.lineage import Contract, Sent, author_of, by_whom, follow, is_news, one_each
from server.domain.registers import gives_way
from server.methods.base import Context, open_project
from server.methods.cacp.authority import signer, weight_of_contract
from server.methods.sync import agent_homes
from server.methods.sync.bans import banned_by_then
from server.methods.sync.deferral import defer, signed_message, subject
from server.methods.sync.equivocation import name_two_faced
from server.store import claims, contracts, deferred, mesh
from server.store.contracts import ContractHeader
from server.store.deferred import AGAIN
from server.util.log_once import name_once

Skipped = dict[str, Any]
T = TypeVar("T")


class SignedRegister(Protocol):
    """What something is, in the words of a node: a repo, or the header of a contract."""

    @property
    def signature(self) -> str | None:
        """As the store keeps it."""

    def body(self) -> dict[str, Any]:
        """What of it is signed; `stamp` is when it was said."""


class FactMerge:
    """One message of a mesh peer. `source` is its agent id."""

    def __init__(self, ctx: Context, source: str, introduced: dict[str, str]) -> None:
        self._introduced = introduced
        self._source = source
        self.ctx = Context(
            ctx.db, ctx.caller, ctx.node, ctx.method, ctx.stamp, ctx.transaction, source
        )
        self.skipped: list[Skipped] = []
        self._banned = False
        """Whether a ban keeps out some of it: what follows on that waits in vain."""

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
        self._contradictions(contract_id, facts, sent)
        news = [one for one in one_each(sent) if is_news(facts, one.fact)]
        fresh = [one for one in news if not self._after_ban("contract", contract_id, *by_whom(one))]
        claimed, unclaimed = self._by_claim(params.project_id, fresh)
        if unclaimed and not claimed:
            raise unclaimed[0][1]
        for repo_id, lacking in unclaimed:
            self._skip("claim", repo_id, lacking.message)
        due: list[SignedFact] = []
        for one in claimed:
            if not self._holds(contract_id, one):
                continue
            if self._is_due(one.fact.stamp):
                due.append(one)
            else:
                alone = params.model_copy(update={"facts": [one]})
                self._defer("cacp/contract/sync", alone, one.fact.stamp)
        created, changed = self._join(params, facts, self._following(params, facts, due))
        if changed:
            deferred.wake(ctx.db, contract_id)
        return created, changed

    def _following(
        self, params: ContractSyncParams, facts: domain.Facts, sent: list[SignedFact]
    ) -> list[SignedFact]:
        """Those that follow on what is known here, or came with them. The others wait for what they
        follow on, or are refused."""
        contract_id = params.contract.contract_id
        of = Contract(params.project_id, contract_id)
        found = follow(of, facts, [Sent(one.fact, one.signature.node) for one in sent])
        for _, reason in found.refused:
            self._skip("contract", contract_id, reason)
        if found.waiting and not self._banned:
            keys = {(fact.kind, fact.key) for fact, _ in found.waiting}
            waiting = [one for one in sent if (one.fact.kind, one.fact.key) in keys]
            bare = params.contract.model_copy(update={"content": {}})
            held = params.model_copy(update={"contract": bare, "facts": waiting})
            again, why = self.ctx.now + AGAIN, found.waiting[0][1]
            kept = self._keep("cacp/contract/sync", held, "predecessor", contract_id, again, why)
            for _, reason in found.waiting:
                said = f"deferred: {reason}" if kept else reason
                self.skipped.append({"kind": "contract", "id": contract_id, "reason": said})
        by_key = {(one.fact.kind, one.fact.key): one for one in sent}
        return [by_key[fact.kind, fact.key] for fact in found.taken]

    def _join(
        self, params: ContractSyncParams, facts: domain.Facts, good: list[SignedFact]
    ) -> tuple[bool, bool]:
        ctx = self.ctx
        contract_id = params.contract.contract_id
        signatures: dict[domain.FactKey, str] = {
            (one.fact.kind, one.fact.key): kept
            for one in good
            if (kept := kept_of(ctx, one.signature)) is not None
        }
        new: list[Fact] = [one.fact for one in good]
        header = contracts.header_of(ctx.db, params.project_id, contract_id) if facts else None
        created, theirs = header is None, _header_of(ctx, params, new)
        if header is None:
            first = next((fact for fact in new if isinstance(fact, VersionFact)), None)
            if first is None:
                if new:
                    self._skip("contract", contract_id, "it has no version that holds")
                return False, False
            header = self._named(contract_id, theirs, params.header_signature)
            contracts.insert(
                ctx.db,
                params.project_id,
                contract_id,
                header,
                first,
                signatures.get((first.kind, first.key)),
            )
            facts = {(first.kind, first.key): first}
        if created and len(new) == 1:
            self._see(new[0].stamp)
            ctx.record("contract", contract_id, params.project_id, "proposed")
            return True, True
        joined = contracts.add(
            ctx.db, params.project_id, contract_id, header, facts, new, signatures
        )
        # The facts first: who signed them says whose word of the header counts.
        renamed = not created and self._renamed(params, header, theirs, joined)
        if not created and not renamed and joined == facts:
            return False, False
        self._see(max((fact.stamp for fact in new), default=0))
        ctx.record("contract", contract_id, params.project_id, domain.status_of(joined))
        if domain.has_lost(facts, joined):
            ctx.record("conflict", contract_id, params.project_id, "version_lost")
        return created, True

    def _named(
        self, contract_id: str, theirs: ContractHeader, by: Signature | None
    ) -> ContractHeader:
        """The header of a contract that is new here. What is signed wrongly is nobody's word."""
        if by is None or self._vouched("contract", contract_id, theirs.body(), None, by):
            return theirs
        return theirs._replace(signature="")

    def _renamed(
        self,
        params: ContractSyncParams,
        ours: ContractHeader,
        theirs: ContractHeader,
        facts: domain.Facts,
    ) -> bool:
        """Join a contract's header with ours; whether what readers get is another. Two nodes may
        have made it from one that a foreign peer told both of: the first made it."""
        contract_id = params.contract.contract_id

        def weight(kept: str | None) -> int:
            return weight_of_contract(self.ctx, params.project_id, contract_id, facts, kept)

        at, by = (contract_id, contract_id), params.header_signature
        if not self._yields("contract", at, ours, theirs, by, weight):
            return False
        contracts.renew_copy(self.ctx.db, params.project_id, contract_id, theirs, facts)
        return ours.body() != theirs.body()

    def _contradictions(
        self, contract_id: str, facts: domain.Facts, sent: list[SignedFact]
    ) -> None:
        """Name who has said two things of one with one stamp."""
        for what, known, one in at_one_time(facts, sent):
            ours, theirs = (orjson.loads(orjson.dumps(fact)) for fact in (known, one.fact))
            at = (known.kind, known.key)
            held = ours, contracts.signature_of(self.ctx.db, contract_id, at)
            author = author_of(one.fact)
            self._compare("fact", (contract_id, what), held, theirs, author, one.signature)

    def _by_claim(
        self, project_id: str, sent: list[SignedFact]
    ) -> tuple[list[SignedFact], list[tuple[str, NotFound]]]:
        """Those whose agents have claimed their repos here, and the repos of the others."""
        claimed, unclaimed = [], []
        for one in sent:
            if self._is_claimed(project_id, one):
                claimed.append(one)
                continue
            fact = one.fact
            assert not isinstance(fact, RoundFact)
            unclaimed.append((fact.repo_id, no_claim(project_id, fact.repo_id, fact.agent_id)))
        return claimed, unclaimed

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
        body = orjson.loads(orjson.dumps(fact))
        return self._vouched("fact", contract_id, body, author_of(fact), sent.signature)

    # --- contradictions ---------------------------------------------------------------------

    def _compare(
        self,
        kind: str,
        at: tuple[str, str],
        ours: tuple[dict[str, Any], str | None],
        theirs: dict[str, Any],
        author: str | None,
        by: Signature,
    ) -> None:
        """Name a node that has signed both what is held here and what has come."""

        def holds(body: dict[str, Any], signature: Signature) -> bool:
            return self._vouched(kind, at[0], body, author, signature)

        name_two_faced(self.ctx, kind, at, ours, (theirs, by), holds)

    def _yields(
        self,
        kind: str,
        at: tuple[str, str],
        ours: SignedRegister,
        theirs: SignedRegister,
        by: Signature | None,
        weight: Callable[[str | None], int],
    ) -> bool:
        """Whether what is known here of what something is gives way to what has come: to its text,
        or of one text to a signature of more weight. `at` is where it is signed, and its id."""
        ctx, here, come = self.ctx, ours.body(), theirs.body()
        if here == come and signer(ctx, ours.signature) == signer(ctx, theirs.signature):
            return False
        if by is not None:
            if not self._vouched(kind, at[0], come, None, by):
                return False
            # A node that has forgotten what a foreign peer called a contract may hear another name.
            if kind != "contract" or not by.unkeyed:
                self._compare(kind, at, (here, ours.signature or None), come, None, by)
        weights = weight(ours.signature), weight(theirs.signature)
        if gives_way(here, come, weights):
            return True
        if weights[1] < weights[0] and here != come:
            ctx.node.overruled[self._source] += 1
            who = "nobody" if by is None else by.node
            self._skip(kind, at[1], f"what it is is signed by {who}, whose word counts for less")
        return False

    # --- trust and time -----------------------------------------------------------------------
    def _vouched(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, by: Signature
    ) -> bool:
        """Whether the node that signed did, and may speak for the author."""
        ctx, db = self.ctx, self.ctx.db
        known = self._once(("key", by.node), lambda: mesh.node_key(db, by.node))
        public = self._key_of(by.node, known)
        if public is None:
            self._skip(kind, place, f"nobody here knows the key of {by.node}")
            return False
        if not verify(public, statement(kind, place, body), by.value, by.path):
            self._skip(kind, place, f"the signature is not that of {by.node}")
            return False
        if self._after_ban(kind, place, body, author, by):
            return False
        if author is not None and not same_agent(author, by.node):
            heard = ("home", author, by.node, str(by.unkeyed))
            if not self._once(heard, lambda: self._speaks_for(author, by)):
                self._skip(kind, place, f"{by.node} doesn't speak for {author}")
                return False
        if not (known or same_agent(by.node, ctx.node.agent_id)):
            mesh.pin(ctx.db, by.node, public, introduced_by=self._source)
        return True

    def _after_ban(
        self, kind: str, place: str, body: dict[str, Any], author: str | None, by: Signature
    ) -> bool:
        """Whether it was written after a ban that holds here: who sends it has nothing to mend."""
        known = self._once(("key", by.node), lambda: mesh.node_key(self.ctx.db, by.node))
        if not banned_by_then(self.ctx, body, by.node, self._key_of(by.node, known), author):
            return False
        self._banned = True
        self._skip(kind, place, f"it is signed by {by.node}, after a ban that holds here")
        return True

    def _speaks_for(self, author: str, by: Signature) -> bool:
        """Whether the node that signed may speak for an agent."""
        home = agent_homes.home_of(self.ctx, author)
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
        return agent_homes.key_of(self.ctx, node, known, self._introduced)

    def _is_due(self, stamp: int) -> bool:
        ctx = self.ctx
        return is_due(stamp, ctx.now, ctx.node.future_limit) or is_due(
            stamp, deferred.accepted(ctx.db), ctx.node.future_limit
        )

    def _defer(self, method: str, params: Any, stamp: int) -> None:
        due, why = stamp - self.ctx.node.future_limit, f"it is stamped {iso(stamp)}"
        if self._keep(method, params, "stamp", subject(params), due, why):
            self.skipped.append({"kind": method, "id": "", "reason": "deferred until it is due"})

    def _keep(
        self, method: str, params: Any, reason: deferred.Reason, about: str, due: int, why: str
    ) -> bool:
        """Defer what was found to be its author's; False when its peer has too much deferred."""
        message = signed_message(self._source, method, params)
        kept = defer(self.ctx, message, reason, about, due=due, why=why)
        if not kept:
            said = "too much of yours is deferred already: it is not kept, send it again later"
            self.skipped.append({"kind": method, "id": "", "reason": said})
        return kept

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


def no_claim(project_id: str, repo_id: str, agent_id: str) -> NotFound:
    return NotFound(
        f"{agent_id} has no claim here on repo {repo_id}: send the project first",
        kind="claim",
        projectId=project_id,
    )


def kept_of(ctx: Context, signature: Signature) -> str | None:
    """A signature as the store keeps it: of what this node itself says, none."""
    if same_agent(signature.node, ctx.node.agent_id):
        return None
    return signature.model_dump_json()


def _header_of(ctx: Context, params: ContractSyncParams, news: list[Fact]) -> ContractHeader:
    said, by = params.contract, params.header_signature
    created_at = params.created_at or min((fact.stamp for fact in news), default=ctx.stamp)
    return ContractHeader(said.type, said.name, created_at, "" if by is None else kept_of(ctx, by))


def _is_node(ctx: Context, author: str | None) -> bool:
    if author is None:
        return False
    return same_agent(author, ctx.node.agent_id) or mesh.node_key(ctx.db, author) is not None
