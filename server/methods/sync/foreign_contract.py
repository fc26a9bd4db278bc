"""Contracts as foreign peers show them: what the peer itself changed becomes facts (design §8)."""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from peers.foreign import ContractExchange, Difference, NotTheirs, contract_differences, to_facts
from schemas.facts import VersionFact
from schemas.sync import PeerContract
from server.domain import contract as domain
from server.domain.admission import admissible, news
from server.domain.authorship import check_sendable
from server.domain.errors import Refusal
from server.domain.identifiers import names_beginner
from server.domain.lineage import VERSION_JUMP_MAX
from server.domain.terms import terms_of
from server.methods.base import Context
from server.methods.sync.sending_peer import SendingPeer
from server.store import contracts, peers
from server.store.contracts import ContractHeader


def merge_contract(source: SendingPeer, shown: PeerContract) -> bool:
    """Apply what the peer changed of a contract, as far as its repo may. Returns whether the
    contract changed."""
    ctx, contract_id = source.ctx, shown.contract_id

    def skip(reason: str) -> bool:
        source.skip("contract", contract_id, reason)
        return False

    repo_id = source.repo_id
    if repo_id is None:
        return skip("The peer holds no repo of this project")
    if contracts.project_of(ctx.db, contract_id) not in (None, source.project_id):
        return skip("The contract belongs to another project")
    shown = _with_local_ids(source, shown)
    known = _known(ctx, source.project_id, contract_id)
    if known is None and names_beginner(contract_id):
        return skip("A mesh node created it and will sync it")
    if shown.version > (known.version if known else 0) + VERSION_JUMP_MAX:
        return skip("Its version is too far ahead")
    exchange = ContractExchange.of(peers.exchanged(ctx.db, source.agent_id, contract_id))
    try:
        differences = contract_differences(known, exchange, shown, repo_id, check_sendable)
    except (NotTheirs, Refusal) as error:
        return skip(str(error))
    exchanged = exchange.after_hearing(shown).model_dump_json()
    peers.put_exchanged(ctx.db, source.agent_id, contract_id, exchanged)
    return bool(differences) and _apply(source, repo_id, shown, differences)


def _apply(
    source: SendingPeer, repo_id: str, shown: PeerContract, differences: Sequence[Difference]
) -> bool:
    """Join the facts that the differences stand for, as far as the peer's repo may write them."""
    ctx, project_id, contract_id = source.ctx, source.project_id, shown.contract_id
    header = contracts.header_of(ctx.db, project_id, contract_id)
    facts = contracts.facts_of(ctx.db, contract_id) if header else {}
    current = domain.current_of(facts) if facts else None
    parties = tuple(member.repo_id for member in source.project.members)
    terms = terms_of(
        source.project.terms,
        header.type if header else shown.type,
        parties,
        None,
        first_author=domain.versions_of(facts)[0].repo_id if facts else repo_id,
        before=current,
    )
    new = to_facts(
        differences,
        current,
        repo_id=repo_id,
        agent_id=source.agent_id,
        parties=parties,
        policy=source.project.agreement_policy,
        verification=terms.verification,
        roles=terms.frozen,
        round_number=domain.round_of(facts, current) if current else 1,
        stamp=ctx.stamp,
    )
    if header is None:
        first, *new = new
        assert isinstance(first, VersionFact)
        header = ContractHeader(shown.type, shown.name, source.past(shown.created_at))
        contracts.insert(ctx.db, project_id, contract_id, header, first)
        facts = {(first.kind, first.key): first}
    if current is not None and not (new := news(facts, new)):
        return False
    admitted = admissible(facts, new)
    if current is not None and not admitted:
        reason = (
            f"Repo {repo_id} may not write this {new[0].kind} while the contract is "
            f"{domain.status_of(facts)}: only a party writes versions, agreements, rejections, "
            "implementations and verifications, and only an implemented contract can be verified"
        )
        source.skip("contract", contract_id, reason)
        return False
    joined = contracts.add(ctx.db, project_id, contract_id, header, facts, admitted)
    ctx.record("contract", contract_id, project_id, domain.status_of(joined))
    return not _note_lost_version(source, shown, facts, joined)


def _note_lost_version(
    source: SendingPeer, shown: PeerContract, facts: domain.Facts, joined: domain.Facts
) -> bool:
    """Record it as a conflict when a version has lost a race, and tell the peer if it is its own.

    Returns whether it is the peer's: then that version is kept, but is not the current one.
    """
    if not domain.has_lost(facts, joined):
        return False
    # The peer is the origin, as with mesh peers: conflicts are counted for each peer.
    ctx = replace(source.ctx, origin=source.agent_id)
    ctx.record("conflict", shown.contract_id, source.project_id, "version_lost")
    current = domain.current_of(joined)
    if current.version <= shown.version:
        return False
    reason = f"Version {shown.version} is kept as a conflict: it lost to version {current.version}"
    source.skipped.append({"kind": "contract", "id": shown.contract_id, "reason": reason})
    return True


def _known(ctx: Context, project_id: str, contract_id: str) -> PeerContract | None:
    """The contract here, as a foreign peer is shown it."""
    document = contracts.document(ctx.db, project_id, contract_id, history=False)
    return None if document is None else PeerContract.model_validate_json(orjson.dumps(document))


def _with_local_ids(source: SendingPeer, shown: PeerContract) -> PeerContract:
    proposer = source.local_id(shown.proposed_by) if shown.proposed_by else None
    works = [
        work.model_copy(update={"repo_id": source.local_id(work.repo_id)})
        for work in shown.implementations
    ]
    return shown.model_copy(update={"proposed_by": proposer, "implementations": works})
