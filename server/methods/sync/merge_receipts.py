"""Receipts that come from mesh peers, joined with those that are here (N2, "Who is believed").

The node that recorded a receipt signs it as it signs a fact, and so vouches that it knew the
runner. It counts if that node takes part in the project: any member may. The runner's own signature
is checked too, so that no node can edit what a runner found.
"""

from typing import Any

from schemas.facts import Fact, ReceiptFact, members_of
from schemas.mesh import SignedFact
from schemas.sync import ReceiptSyncParams
from server.domain import contract as domain
from server.domain.equivocation import at_one_time
from server.domain.errors import NotFound
from server.domain.lineage import ContractRef, Followed, Sent, by_whom, follow, is_news, one_each
from server.domain.receipts import flaw_of
from server.methods.cacp.authority import has_standing
from server.methods.sync.peer_message import UNCHANGED, MergeOutcome, PeerMessage
from server.methods.sync.signer_check import SignerCheck, kept_of
from server.store import contracts
from server.store.deferred import AGAIN

METHOD = "cacp/receipt/sync"


class ReceiptMerge:
    """Merges the receipts that a message carries."""

    def __init__(self, message: PeerMessage) -> None:
        self._message = message
        self._signers = SignerCheck(message)
        self._ctx = message.ctx

    def receipts(self, params: ReceiptSyncParams) -> MergeOutcome:
        """Join the receipts of a contract with those here. They wait for the contract, and for what
        they follow on. Raises NotFound for an unknown project, or when no sender takes part in it
        as far as is known here."""
        db, contract_id = self._ctx.db, params.receipts.contract_id
        self._message.open_project(params.project_id)
        at = contracts.project_of(db, contract_id)
        if at is None:
            self._defer(params, params.receipts.facts, "its contract is not here")
            return UNCHANGED
        if at != params.project_id:
            self._skip(contract_id, "the contract belongs to another project")
            return UNCHANGED
        facts = contracts.facts_of(db, contract_id)
        sent = [signed for signed in params.receipts.facts if self._is_receipt(params, signed.fact)]
        self._note_contradictions(contract_id, facts, sent)
        news = [
            signed
            for signed in one_each(sent)
            if is_news(facts, signed.fact)
            and not self._signers.skip_banned("receipt", contract_id, *by_whom(signed))
        ]
        good = [signed for signed in self._of_members(params, news) if self._is_due(params, signed)]
        return self._join(params, facts, good)

    def _is_receipt(self, params: ReceiptSyncParams, fact: Fact) -> bool:
        """Whether a fact is a receipt that its runner signed as it is."""
        contract_id = params.receipts.contract_id
        if not isinstance(fact, ReceiptFact):
            self._skip(contract_id, f"a {fact.kind} is no receipt")
            return False
        flaw = flaw_of(contract_id, fact)
        if flaw is not None:
            self._skip(contract_id, f"a receipt of {fact.repo_id}: {flaw}")
        return flaw is None

    def _of_members(self, params: ReceiptSyncParams, sent: list[SignedFact]) -> list[SignedFact]:
        """The receipts that nodes have signed which take part in the project. Raises NotFound when
        there are others only: a claim of theirs must come first."""
        project_id = params.project_id
        members = {
            node: self._message.once(
                ("standing", project_id, node),
                lambda node=node: has_standing(self._ctx, project_id, node),  # type: ignore[misc]
            )
            for node in {signed.signature.node for signed in sent}
        }
        taken = [signed for signed in sent if members[signed.signature.node]]
        for node in sorted(node for node, is_member in members.items() if not is_member):
            missing = f"{node} takes no part in the project here: send the project first"
            if not taken:
                raise NotFound(missing, kind="claim", projectId=project_id)
            self._message.skip("claim", params.receipts.contract_id, missing)
        return taken

    def _is_due(self, params: ReceiptSyncParams, signed: SignedFact) -> bool:
        """Whether the node has signed the receipt, and it is due. One that is not is deferred."""
        contract_id, body = params.receipts.contract_id, members_of(signed.fact)
        if not self._signers.accept("fact", contract_id, body, None, signed.signature):
            return False
        if self._message.is_due(signed.fact.stamp):
            return True
        self._message.defer_until_due(METHOD, _with(params, [signed]), signed.fact.stamp)
        return False

    def _join(
        self, params: ReceiptSyncParams, facts: domain.Facts, good: list[SignedFact]
    ) -> MergeOutcome:
        project_id, contract_id = params.project_id, params.receipts.contract_id
        followed = self._followed(params, facts, good)
        header = contracts.header_of(self._ctx.db, project_id, contract_id)
        if header is None or not followed.taken:
            return UNCHANGED
        signatures: dict[domain.FactKey, str] = {
            (signed.fact.kind, signed.fact.key): kept
            for signed in good
            if (kept := kept_of(self._ctx, signed.signature)) is not None
        }
        joined = contracts.add(
            self._ctx.db, project_id, contract_id, header, facts, followed.taken, signatures
        )
        self._message.see(max(fact.stamp for fact in followed.taken))
        self._ctx.record("receipt", contract_id, project_id, "received")
        status = domain.status_of(joined)
        if status != domain.status_of(facts):
            self._ctx.record("contract", contract_id, project_id, status)
        return MergeOutcome(created=False, changed=True)

    def _followed(
        self, params: ReceiptSyncParams, facts: domain.Facts, good: list[SignedFact]
    ) -> Followed:
        """The receipts that follow on what is known here; the others wait for it, or are
        skipped."""
        contract_id = params.receipts.contract_id
        followed = follow(
            ContractRef(params.project_id, contract_id),
            facts,
            [Sent(signed.fact, signed.signature.node) for signed in good],
        )
        for _, reason in followed.refused:
            self._skip(contract_id, reason)
        if followed.waiting and not self._signers.has_banned:
            keys = {fact.key for fact, _ in followed.waiting}
            waiting = [signed for signed in good if signed.fact.key in keys]
            self._defer(params, waiting, followed.waiting[0][1])
        return followed

    def _note_contradictions(
        self, contract_id: str, facts: domain.Facts, sent: list[SignedFact]
    ) -> None:
        """Note the nodes that have signed two different receipts with one stamp."""
        for key, fact, signed in at_one_time(facts, sent):
            stored = contracts.signature_of(self._ctx.db, contract_id, (fact.kind, fact.key))
            known = members_of(fact), stored
            other = members_of(signed.fact)
            self._signers.note_contradiction(
                "fact", (contract_id, key), known, other, None, signed.signature
            )

    def _defer(self, params: ReceiptSyncParams, sent: list[SignedFact], why: str) -> None:
        contract_id, again = params.receipts.contract_id, self._ctx.now + AGAIN
        is_kept = self._message.defer(
            METHOD, _with(params, sent), "predecessor", contract_id, again, why
        )
        reason = f"deferred: {why}" if is_kept else why
        skipped: dict[str, Any] = {"kind": "receipt", "id": contract_id, "reason": reason}
        self._message.skipped.append(skipped)

    def _skip(self, contract_id: str, reason: str) -> None:
        self._message.skip("receipt", contract_id, reason)


def _with(params: ReceiptSyncParams, sent: list[SignedFact]) -> ReceiptSyncParams:
    """The message with some of its receipts."""
    rest = params.receipts.model_copy(update={"facts": sent})
    return params.model_copy(update={"receipts": rest})
