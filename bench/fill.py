"""Fills a database with many contracts, through the node's own methods."""

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.domain.acp.rules import MailRules
from server.methods import METHODS
from server.methods.base import Context
from server.node import Node
from server.store import digests
from server.store.connection import Connection
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare

CONTENT = {
    "method": "GET",
    "path": "/api/v1/users/profile",
    "headers": {"Authorization": "Bearer {token}"},
    "responseBody": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "email": {"type": "string"},
            "name": {"type": "string"},
        },
    },
}
REPOS = [
    {"name": "backend-api", "role": "backend", "language": "python"},
    {"name": "frontend-app", "role": "frontend", "language": "typescript"},
]
AGENT = "aid://localhost/backend-api@1.0.0"
FIRST_STAMP = time.time_ns() // 1000 - 3_600_000_000


class Filler:
    """Calls methods on a database directly, without a server."""

    def __init__(
        self, db: Connection, rules: MailRules | None = None, agent_id: str = AGENT
    ) -> None:
        self.db = db
        self.stamp = FIRST_STAMP
        self.caller = Caller(agent_id, "backend-api", "verified", "local")
        key = SigningKey(bytes(32))
        self.node = Node(agent_id, "backend-api", True, True, key, acp=rules or MailRules())

    def call(self, name: str, /, **params: Any) -> Any:
        method = METHODS[name]
        self.stamp += 1
        context = Context(self.db, self.caller, self.node, name, self.stamp)
        return method.run(context, method.params.model_validate(params, by_alias=True))

    def project(self) -> str:
        made = self.call("cacp/project/create", name="Bench", objective="Speed", repos=REPOS)
        return str(made["projectId"])

    def contract(self, project_id: str) -> str:
        made = self.call("cacp/contract/propose", **proposal(project_id))
        return str(made["contractId"])


def proposal(project_id: str) -> dict[str, Any]:
    """Params of the specification's own example of a proposal."""
    return {
        "projectId": project_id,
        "type": "api_endpoint",
        "name": "Get User Profile",
        "content": CONTENT,
    }


def fill(
    path: Path,
    projects: int,
    contracts_each: int,
    agent_id: str = AGENT,
    *,
    count_digests: bool = False,
) -> tuple[str, str]:
    """Fill the database as a node of this agent would. With `count_digests`, as a node with peers.

    Returns the ids of a project in the middle, and of one of its contracts.
    """
    prepare(path)
    chosen = ("", "")
    with closing(connect(path, durability="NORMAL")) as db:
        filler = Filler(db, agent_id=agent_id)
        for number in range(projects):
            db.execute("BEGIN IMMEDIATE")
            project_id = filler.project()
            contract_id = ""
            for _ in range(contracts_each):
                contract_id = filler.contract(project_id)
            while count_digests and not digests.catch_up(db):
                pass
            db.execute("COMMIT")
            if number == projects // 2:
                chosen = (project_id, contract_id)
            if number % 200 == 199:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                done = (number + 1) * contracts_each
                print(f"\r  {done:,} contracts filled in", end="", file=sys.stderr, flush=True)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    print(file=sys.stderr)
    return chosen
