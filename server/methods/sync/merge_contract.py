"""Contracts that come from mesh peers: their facts, joined with those that are here (design §7).

The signature of each fact is checked; an invalid fact is skipped and logged once.
A fact stamped too far ahead is deferred until it is due, and doesn't delay the others.
"""

from typing import Any

import orjson

from schemas.facts import Fact, ReceiptFact, RoundFact, VersionFact, json_of, members_of
from schemas.mesh import Signature, SignedFact
from schemas.sync import ContractSyncParams
from server.domain import contract as domain
from server.domain.canonical import digest
from server.domain.equivocation import at_one_time
from server.domain.errors import NotFound
from server.domain.lineage import ContractRef, Sent, author_of, by_whom, follow, is_news, one_each
from server.domain.registers import Weight
from server.methods.base import Context
from server.methods.cacp.authority import weight_of_contract
from server.methods.sync import new_contracts
from server.methods.sync.merge_register import RegisterMerge, RegisterRef
from server.methods.sync.peer_message import UNCHANGED, MergeOutcome, PeerMessage, no_claim
from server.methods.sync.signer_check import SignerCheck, kept_of
from server.store import claims, contracts, deferred
from server.store.contracts import ContractHeader
from server.store.deferred import AGAIN


class ContractMerge:
    """Merges the contract that a message carries."""

    def __init__(self, message: PeerMessage) -> None:
        self._message = message
        self._signers = SignerCheck(message)
        self._registers = RegisterMerge(message, self._signers)
        self._ctx = message.ctx

    def contract(self, params: ContractSyncParams, sent: list[SignedFact]) -> MergeOutcome:
        """Join a contract's facts with those here.

        A fact whose claim must come first is skipped (`kind` is claim): its sender brings that
        next. Raises NotFound for an unknown project, or when every fact lacks its claim.
        """
        ctx, message, contract_id = self._ctx, self._message, params.contract.contract_id
        message.open_project(params.project_id)
        is_new = new_contracts.is_new(message.transaction, contract_id)
        known_project = None if is_new else contracts.project_of(ctx.db, contract_id)
        if known_project not in (None, params.project_id):
            message.skip("contract", contract_id, "the contract belongs to another project")
            return UNCHANGED
        facts = {} if known_project is None else contracts.facts_of(ctx.db, contract_id)
        sent = [signed for signed in sent if not self._is_receipt(contract_id, signed)]
        self._note_contradictions(contract_id, facts, sent)
        news = [
            signed
            for signed in one_each(sent)
            if is_news(facts, signed.fact)
            and not self._signers.skip_banned("contract", contract_id, *by_whom(signed))
        ]
        claimed, unclaimed = self._by_claim(params.project_id, news)
        if unclaimed and not claimed:
            raise unclaimed[0][1]
        for repo_id, missing in unclaimed:
            message.skip("claim", repo_id, missing.message)
        due = [signed for signed in claimed if self._is_good_now(params, signed)]
        outcome = self._join(params, facts, self._following(params, facts, due))
        if outcome.changed and not new_contracts.is_new(message.transaction, contract_id):
            deferred.wake(ctx.db, contract_id, ctx.now)
        new_contracts.forget(message.transaction, contract_id)
        return outcome

    def _is_receipt(self, contract_id: str, signed: SignedFact) -> bool:
        """Whether a fact is a receipt, which is skipped here: cacp/receipt/sync checks those."""
        if not isinstance(signed.fact, ReceiptFact):
            return False
        self._message.skip("contract", contract_id, "receipts come by cacp/receipt/sync")
        return True

    def _is_good_now(self, params: ContractSyncParams, signed: SignedFact) -> bool:
        """Whether its author wrote the fact, and it is due. A fact that is not due is deferred."""
        fact = signed.fact
        if not self._is_its_authors(params.contract.contract_id, signed):
            return False
        if self._message.is_due(fact.stamp):
            return True
        alone = params.model_copy(update={"facts": [signed]})
        self._message.defer_until_due("cacp/contract/sync", alone, fact.stamp)
        return False

    def _is_its_authors(self, contract_id: str, signed: SignedFact) -> bool:
        fact = signed.fact
        if isinstance(fact, VersionFact) and digest(fact.content) != fact.digest:
            reason = "the digest of a version doesn't match its content"
            self._message.skip("contract", contract_id, reason)
            return False
        body = members_of(fact)
        return self._signers.accept("fact", contract_id, body, author_of(fact), signed.signature)

    def _following(
        self, params: ContractSyncParams, facts: domain.Facts, sent: list[SignedFact]
    ) -> list[SignedFact]:
        """The facts that follow on what is known here or was sent with them. The others are
        deferred until what they follow on is here, or skipped."""
        contract_id = params.contract.contract_id
        contract = ContractRef(params.project_id, contract_id)
        sorted_facts = follow(
            contract, facts, [Sent(signed.fact, signed.signature.node) for signed in sent]
        )
        by_key = {(signed.fact.kind, signed.fact.key): signed for signed in sent}
        for _, reason in sorted_facts.refused:
            self._message.skip("contract", contract_id, reason)
        if sorted_facts.waiting and not self._signers.has_banned:
            keys = {(fact.kind, fact.key) for fact, _ in sorted_facts.waiting}
            waiting = [signed for key, signed in by_key.items() if key in keys]
            bare = params.contract.model_copy(update={"content": {}})
            rest = params.model_copy(update={"contract": bare, "facts": waiting})
            again, why = self._ctx.now + AGAIN, sorted_facts.waiting[0][1]
            is_kept = self._message.defer(
                "cacp/contract/sync", rest, "predecessor", contract_id, again, why
            )
            for _, reason in sorted_facts.waiting:
                outcome = f"deferred: {reason}" if is_kept else reason
                skipped = {"kind": "contract", "id": contract_id, "reason": outcome}
                self._message.skipped.append(skipped)
        return [by_key[fact.kind, fact.key] for fact in sorted_facts.taken]

    def _join(
        self, params: ContractSyncParams, facts: domain.Facts, good: list[SignedFact]
    ) -> MergeOutcome:
        project_id, contract_id = params.project_id, params.contract.contract_id
        header = contracts.header_of(self._ctx.db, project_id, contract_id) if facts else None
        if header is None:
            return self._create(params, good)
        return self._add_to_known(params, header, facts, good)

    def _create(self, params: ContractSyncParams, good: list[SignedFact]) -> MergeOutcome:
        """Create the contract from its first version, and add the other facts."""
        db, project_id, contract_id = self._ctx.db, params.project_id, params.contract.contract_id
        new = [signed.fact for signed in good]
        first = next((fact for fact in new if isinstance(fact, VersionFact)), None)
        if first is None:
            if new:
                self._message.skip("contract", contract_id, "no valid version was received")
            return UNCHANGED
        sent_header = _header_of(self._ctx, params, new)
        header = self._first_header(contract_id, sent_header, params.header_signature)
        signatures, key = self._signatures_of(good), (first.kind, first.key)
        contracts.insert(db, project_id, contract_id, header, first, signatures.get(key))
        before: domain.Facts = {key: first}
        joined = before
        if len(new) > 1:
            joined = contracts.add(db, project_id, contract_id, header, before, new, signatures)
        self._record(params, new, before, joined)
        return MergeOutcome(created=True, changed=True)

    def _add_to_known(
        self,
        params: ContractSyncParams,
        header: ContractHeader,
        facts: domain.Facts,
        good: list[SignedFact],
    ) -> MergeOutcome:
        db, project_id, contract_id = self._ctx.db, params.project_id, params.contract.contract_id
        new = [signed.fact for signed in good]
        signatures = self._signatures_of(good)
        joined = contracts.add(db, project_id, contract_id, header, facts, new, signatures)
        # The facts come first: their signers decide who has authority over the header.
        renamed = self._renamed(params, header, _header_of(self._ctx, params, new), joined)
        if not renamed and joined == facts:
            return UNCHANGED
        self._record(params, new, facts, joined)
        return MergeOutcome(created=False, changed=True)

    def _signatures_of(self, good: list[SignedFact]) -> dict[domain.FactKey, str]:
        return {
            (signed.fact.kind, signed.fact.key): kept
            for signed in good
            if (kept := kept_of(self._ctx, signed.signature)) is not None
        }

    def _record(
        self,
        params: ContractSyncParams,
        new: list[Fact],
        before: domain.Facts,
        joined: domain.Facts,
    ) -> None:
        contract_id, project_id = params.contract.contract_id, params.project_id
        self._message.see(max((fact.stamp for fact in new), default=0))
        self._ctx.record("contract", contract_id, project_id, domain.status_of(joined))
        if domain.has_lost(before, joined):
            self._ctx.record("conflict", contract_id, project_id, "version_lost")

    def _first_header(
        self, contract_id: str, header: ContractHeader, signature: Signature | None
    ) -> ContractHeader:
        """The header of a new contract; an invalid signature is left out of it."""
        if signature is None or self._signers.accept(
            "contract", contract_id, header.body(), None, signature
        ):
            return header
        return header._replace(signature="")

    def _renamed(
        self,
        params: ContractSyncParams,
        known: ContractHeader,
        sent: ContractHeader,
        facts: domain.Facts,
    ) -> bool:
        """Join a contract's header with the one here. Returns whether readers get another.

        Two nodes may have made the contract from what a foreign peer sent to both: the first did.
        """
        contract_id = params.contract.contract_id

        def weight(signature: str | None) -> Weight:
            return weight_of_contract(self._ctx, params.project_id, contract_id, facts, signature)

        ref = RegisterRef("contract", contract_id, contract_id)
        if not self._registers.replaces(ref, known, sent, params.header_signature, weight):
            return False
        contracts.renew_copy(self._ctx.db, params.project_id, contract_id, sent, facts)
        return known.body() != sent.body()

    def _note_contradictions(
        self, contract_id: str, facts: domain.Facts, sent: list[SignedFact]
    ) -> None:
        """Note the nodes that have signed two different facts with one stamp."""
        for key, fact, signed in at_one_time(facts, sent):
            stored = contracts.signature_of(self._ctx.db, contract_id, (fact.kind, fact.key))
            self._signers.note_contradiction(
                "fact",
                (contract_id, key),
                (_body_of(fact), stored),
                _body_of(signed.fact),
                author_of(signed.fact),
                signed.signature,
            )

    def _by_claim(
        self, project_id: str, sent: list[SignedFact]
    ) -> tuple[list[SignedFact], list[tuple[str, NotFound]]]:
        """The facts whose agents have claimed their repos here, and the repos of the others."""
        claimed, unclaimed = [], []
        for signed in sent:
            fact = signed.fact
            if isinstance(fact, RoundFact) or self._has_claim(
                project_id, fact.repo_id, fact.agent_id, signed.signature
            ):
                claimed.append(signed)
            else:
                missing = no_claim(project_id, fact.repo_id, fact.agent_id)
                unclaimed.append((fact.repo_id, missing))
        return claimed, unclaimed

    def _has_claim(
        self, project_id: str, repo_id: str, agent_id: str, signature: Signature
    ) -> bool:
        """Whether the agent has claimed the repo here. A foreign peer's fact needs no claim on
        a repo without one."""
        if self._message.has_claimed(project_id, repo_id, agent_id):
            return True
        return signature.unkeyed and claims.holder(self._ctx.db, project_id, repo_id) is None


def _body_of(fact: Fact) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(json_of(fact))
    return body


def _header_of(ctx: Context, params: ContractSyncParams, news: list[Fact]) -> ContractHeader:
    contract, signature = params.contract, params.header_signature
    created_at = params.created_at or min((fact.stamp for fact in news), default=ctx.stamp)
    kept = "" if signature is None else kept_of(ctx, signature)
    return ContractHeader(contract.type, contract.name, created_at, kept)
