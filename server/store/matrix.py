"""The contracts of a project in short: the facts that `server.domain.matrix` decides on, read
without contents in a few queries."""

from collections import defaultdict
from collections.abc import Iterable

import orjson

from server.domain.matrix import ContractLine, DueStep, PartyStep
from server.store.connection import Connection
from server.store.sql import SQL

# A page reads thousands of rows: as text, which is faster than aiosql's own call.
_LINES: str = SQL.contract_lines.sql
_STEPS: str = SQL.party_steps.sql
_AWAITED: str = SQL.awaited_steps.sql


def contract_lines(db: Connection, project_id: str) -> list[ContractLine]:
    """Every contract of a project, by id."""
    versions: dict[str, dict[str, tuple[str, ContractLine]]] = defaultdict(dict)
    for row in db.execute(_LINES, {"project_id": project_id}):
        author, first_author, parties, roles, verification, key = row[7:]
        named = None if roles is None else orjson.loads(roles)
        read = (*row[:8], first_author or author, tuple(orjson.loads(parties)), named, verification)
        line = ContractLine._make(read)
        # As server.domain.contract decides: the earliest of equal contents, the latest of others.
        known = versions[line.contract_id].get(line.digest)
        if known is None or (line.since, key) < (known[1].since, known[0]):
            versions[line.contract_id][line.digest] = key, line
    return [
        max((line for _, line in raced.values()), key=lambda line: (line.since, line.digest))
        for raced in versions.values()
    ]


def party_steps(
    db: Connection, project_id: str, contract_ids: Iterable[str]
) -> dict[str, list[PartyStep]]:
    """The responses, rounds, implementations and verifications of contracts, by contract."""
    steps: dict[str, list[PartyStep]] = defaultdict(list)
    wanted = {"project_id": project_id, "ids": orjson.dumps(list(contract_ids)).decode()}
    for contract_id, *step in db.execute(_STEPS, wanted):
        steps[contract_id].append(PartyStep(*step))
    return steps


def awaited_steps(db: Connection, project_id: str) -> dict[str, dict[str, DueStep]]:
    """What each contract of a project waits for, by contract and repo."""
    awaited: dict[str, dict[str, DueStep]] = defaultdict(dict)
    for contract_id, repo_id, kind, since in db.execute(_AWAITED, {"project_id": project_id}):
        awaited[contract_id][repo_id] = DueStep(kind, since)
    return awaited
