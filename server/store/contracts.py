"""The facts of contracts, and the materialised contracts that readers get (design §7)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from schemas.base import iso, present
from schemas.contract import ContractStatus, ContractType
from schemas.facts import FACT, Fact, ImplementationFact, ReceiptFact, VersionFact, json_of
from server.domain import contract as domain
from server.domain.contract import FactKey, Facts
from server.store import attention_index
from server.store.connection import Connection
from server.store.sql import SQL, plain

# On the hot path: run as text, which is faster than aiosql's own call.
_DOCUMENT = plain(SQL.contract_document)
_FACTS = plain(SQL.contract_facts)
_HEADER = plain(SQL.contract_header)
_PROJECT = plain(SQL.contract_project)
_SIGNED = plain(SQL.signed_facts)
_INSERT_CONTRACT = plain(SQL.insert_contract)
_INSERT_FACT = plain(SQL.insert_fact)
_PUT_FACT = plain(SQL.put_fact)


class ContractHeader(NamedTuple):
    """The immutable part of a contract. `created_at` is a stamp; `signature` as in a project's
    header."""

    type: ContractType
    name: str
    created_at: int
    signature: str | None = None

    def body(self) -> dict[str, Any]:
        """The members that are signed."""
        return {"type": self.type, "name": self.name, "stamp": self.created_at}


def facts_of(db: Connection, contract_id: str) -> Facts:
    """Every fact of a contract; empty when there is no such contract."""
    rows = db.execute(_FACTS, (contract_id,))
    facts = (FACT.validate_json(body) for (body,) in rows)
    return {(fact.kind, fact.key): fact for fact in facts}


def header_of(db: Connection, project_id: str, contract_id: str) -> ContractHeader | None:
    row = db.execute(_HEADER, (project_id, contract_id)).fetchone()
    return ContractHeader(*row) if row else None


def project_of(db: Connection, contract_id: str) -> str | None:
    """The project of a contract, by the contract's id alone; None when it is unknown."""
    row = db.execute(_PROJECT, (contract_id,)).fetchone()
    return row[0] if row else None


def new(db: Connection, contract_ids: Iterable[str]) -> set[str]:
    """Those of some contracts of which nothing is stored, and for which no message waits. Their
    ids are without NUL, at which SQLite ends a text of a JSON array."""
    ids = orjson.dumps(list(contract_ids)).decode()
    return {contract_id for (contract_id,) in SQL.new_contracts(db, ids=ids)}


def insert(
    db: Connection,
    project_id: str,
    contract_id: str,
    header: ContractHeader,
    version: VersionFact,
    signature: str | None = None,
) -> None:
    """Insert a contract that nothing is stored of, with its first version, in status proposed.
    `signature` as for `add`."""
    db.execute(_INSERT_FACT, _fact_row(project_id, contract_id, version, signature))
    document = _document(contract_id, header, version, "proposed", [], version.stamp)
    db.execute(
        _INSERT_CONTRACT,
        (
            project_id,
            contract_id,
            header.type,
            header.name,
            version.version,
            "proposed",
            version.repo_id,
            header.created_at,
            version.stamp,
            document,
            "[]",
            header.signature,
        ),
    )
    attention_index.insert_contract(db, project_id, contract_id, version)


def add(
    db: Connection,
    project_id: str,
    contract_id: str,
    header: ContractHeader,
    facts: Facts,
    more: Iterable[Fact],
    signatures: Mapping[FactKey, str] | None = None,
) -> Facts:
    """Join `more` into a contract's facts, write the new ones and renew the materialised contract;
    returns the joined facts.

    `signatures` has those of facts that another node vouches for (schemas.mesh.Signature, JSON).
    """
    joined = domain.join(facts, more)
    fresh = [fact for at, fact in joined.items() if facts.get(at) != fact]
    if fresh:
        _write(db, project_id, contract_id, header, joined, fresh, signatures or {})
    return joined


def restamp(
    db: Connection,
    project_id: str,
    contract_id: str,
    moved: Callable[[int], int],
    *,
    receipts: bool = False,
) -> None:
    """Move the stamps of this node's own facts, which no other node has received yet: of the
    receipts, or of all others."""
    header = header_of(db, project_id, contract_id)
    if header is None:
        return
    facts = dict(facts_of(db, contract_id))
    own = [FACT.validate_json(body) for body, by in signed_facts(db, contract_id) if by is None]
    asked = [fact for fact in own if isinstance(fact, ReceiptFact) == receipts]
    fresh = [restamped for fact in asked if (restamped := _moved(fact, moved)) != fact]
    facts |= {(fact.kind, fact.key): fact for fact in fresh}
    if header.signature is None and not receipts:
        header = header._replace(created_at=moved(header.created_at))
    _write(db, project_id, contract_id, header, facts, fresh, {})


def _moved(fact: Fact, moved: Callable[[int], int]) -> Fact:
    if isinstance(fact, ImplementationFact):
        started = None if fact.started_at is None else moved(fact.started_at)
        completed = None if fact.completed_at is None else moved(fact.completed_at)
        fact = replace(fact, started_at=started, completed_at=completed)
    return replace(fact, stamp=moved(fact.stamp))


def _write(
    db: Connection,
    project_id: str,
    contract_id: str,
    header: ContractHeader,
    facts: Facts,
    fresh: list[Fact],
    signatures: Mapping[FactKey, str],
) -> None:
    """Write new facts of a contract, and renew the materialised contract."""
    for fact in fresh:
        signature = signatures.get((fact.kind, fact.key))
        db.execute(_PUT_FACT, _fact_row(project_id, contract_id, fact, signature))
    renew_copy(db, project_id, contract_id, header, facts)
    # The history may hold many large versions, and most steps add no version.
    if any(isinstance(fact, VersionFact) for fact in fresh):
        history = [_version(version) for version in domain.ancestors_of(facts)]
        SQL.update_history(
            db,
            project_id=project_id,
            contract_id=contract_id,
            history=orjson.dumps(history).decode(),
        )


def outline(db: Connection, project_id: str, contract_id: str) -> dict[str, Any]:
    """The Contract without content and implementations, to be sent when its many facts are sent in
    pieces."""
    row = db.execute(_DOCUMENT, (project_id, contract_id)).fetchone()
    return orjson.loads(row[0]) | {"content": {}, "implementations": []}  # type: ignore[no-any-return]


def document(
    db: Connection, project_id: str, contract_id: str, *, history: bool = True
) -> orjson.Fragment | None:
    """The Contract as JSON, ready to send; `history` includes former versions. None when there is
    no such contract."""
    if history:
        row = SQL.contract_with_history(db, project_id=project_id, contract_id=contract_id)
        return None if row is None else _whole(*row)
    row = db.execute(_DOCUMENT, (project_id, contract_id)).fetchone()
    return None if row is None else orjson.Fragment(row[0])


def history_size(db: Connection, project_id: str, contract_id: str) -> int:
    """The size of a contract's former versions, in characters of JSON."""
    return int(SQL.contract_history_size(db, project_id=project_id, contract_id=contract_id))


def documents(db: Connection, project_id: str) -> list[orjson.Fragment]:
    """Every Contract of a project with its history, as JSON."""
    return [_whole(*row) for row in SQL.contract_documents(db, project_id=project_id)]


def summaries(
    db: Connection,
    project_id: str,
    *,
    after: str,
    status: str | None,
    type: str | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Short forms of a project's contracts, ordered by id, after the id `after`."""
    rows = SQL.contract_rows_after(
        db, project_id=project_id, after=after, status=status, type=type, limit=limit
    )
    return [
        present(
            {
                "contractId": contract_id,
                "type": type_,
                "name": name,
                "version": version,
                "status": status_,
                "proposedBy": proposed_by,
                "proposedByName": repo,
            }
        )
        for contract_id, type_, name, version, status_, proposed_by, repo in rows
    ]


def conflicts(db: Connection, contract_id: str) -> list[tuple[VersionFact, VersionFact]]:
    """Versions that lost a race, each with the current version. Only the contents of these are
    read, as a project's contents may be large."""
    rows = SQL.contract_versions(db, contract_id=contract_id)
    read = (FACT.validate_json(body) for (body,) in rows)
    facts: Facts = {(fact.kind, fact.key): fact for fact in read}
    lost = domain.conflicts_of(facts)
    if not lost:
        return []
    current = _version_fact(db, contract_id, domain.current_of(facts).key)
    return [(_version_fact(db, contract_id, version.key), current) for version in lost]


def _version_fact(db: Connection, contract_id: str, key: str) -> VersionFact:
    body = SQL.contract_fact(db, contract_id=contract_id, kind="version", key=key)
    fact = FACT.validate_json(body)
    assert isinstance(fact, VersionFact)
    return fact


def updated(db: Connection, project_id: str) -> list[str]:
    """Ids of a project's contracts that have more than one version, even of the same number."""
    return [row[0] for row in SQL.updated_contracts(db, project_id=project_id)]


def _whole(document: str, history: str) -> orjson.Fragment:
    return orjson.Fragment(f'{document[:-1]},"history":{history}}}')


def signed_facts(db: Connection, contract_id: str) -> list[tuple[str, str | None]]:
    """Each fact as JSON with its signature, oldest first; None for the signature of this node's own
    facts."""
    return db.execute(_SIGNED, (contract_id,)).fetchall()


def signature_of(db: Connection, contract_id: str, at: FactKey) -> str | None:
    """The signature of a fact; None for this node's own facts."""
    return SQL.signature_of_fact(  # type: ignore[no-any-return]
        db, contract_id=contract_id, kind=at[0], key=at[1]
    )


def _fact_row(
    project_id: str, contract_id: str, fact: Fact, signature: str | None
) -> tuple[str | int | None, ...]:
    body = json_of(fact).decode()
    return contract_id, fact.kind, fact.key, project_id, fact.stamp, body, signature


def renew_copy(
    db: Connection, project_id: str, contract_id: str, header: ContractHeader, facts: Facts
) -> None:
    """Renew the materialised contract, except its history, and what waits on it."""
    current = domain.current_of(facts)
    status = domain.status_of(facts)
    attention_index.renew_contract(db, project_id, contract_id, facts, current, status)
    updated_at = domain.updated_at(facts)
    work = domain.implementations_of(facts)
    SQL.update_contract(
        db,
        type=header.type,
        name=header.name,
        project_id=project_id,
        contract_id=contract_id,
        version=current.version,
        status=status,
        proposed_by=current.repo_id,
        created_at=header.created_at,
        updated_at=updated_at,
        document=_document(contract_id, header, current, status, work, updated_at),
        signature=header.signature,
    )


def _document(
    contract_id: str,
    header: ContractHeader,
    current: VersionFact,
    status: ContractStatus,
    work: list[ImplementationFact],
    updated_at: int,
) -> str:
    """The Contract without its history, as JSON."""
    return orjson.dumps(
        {
            "contract_id": contract_id,
            "type": header.type,
            "name": header.name,
            "version": current.version,
            "status": status,
            "content": current.content,
            "proposed_by": current.repo_id,
            "implementations": [_implementation(fact) for fact in work],
            "created_at": iso(header.created_at),
            "updated_at": iso(updated_at),
        }
    ).decode()


def _implementation(fact: ImplementationFact) -> dict[str, Any]:
    work = {
        "repo_id": fact.repo_id,
        "agent_id": fact.agent_id,
        "status": fact.status,
        "plan": fact.plan,
        "files": fact.files,
        "notes": fact.notes,
        "test_endpoint": fact.test_endpoint,
        "started_at": iso(fact.started_at) if fact.started_at else None,
        "completed_at": iso(fact.completed_at) if fact.completed_at else None,
        "commit": fact.commit,
    }
    return present(work)


def _version(fact: VersionFact) -> dict[str, Any]:
    former = {
        "version": fact.version,
        "content": fact.content,
        "proposed_by": fact.repo_id,
        "timestamp": iso(fact.stamp),
        "change_notes": fact.note,
    }
    return present(former)
