"""Mail on a database of its own, without a node: for what a call can't show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from peers.signing import SigningKey
from schemas.acp import ACPGivenPolicy
from server.auth.authenticator import Caller
from server.domain.acp.drafts import Draft
from server.domain.acp.rules import MailRules
from server.methods.acp import mail
from server.methods.acp.retention import Ageing
from server.methods.base import Context
from server.node import Node
from server.store import keys
from server.store.group_commit import Transaction
from tests.support.located import connect, prepare

START = 1_800_000_000_000_000
SECOND = 1_000_000
ANNA = "aid://example.com/anna@1.0.0"
BERT = "aid://example.com/bert@1.0.0"
CARL = "aid://example.com/carl@1.0.0"


class Office:
    """Anna, Bert and Carl hold keys. `at` is the time, in seconds since the start."""

    def __init__(self, path: Path) -> None:
        prepare(path)
        self.path = path
        self.db = connect(path)
        self.at = 0.0
        self.calls = 0
        self.rules = MailRules()
        for agent_id in (ANNA, BERT, CARL):
            keys.add(self.db, keys.new_key(), agent_id=agent_id, repo="mail", now=START)

    def reopen(self) -> None:
        """As after a restart."""
        self.db.close()
        self.db = connect(self.path)

    def context(self, agent_id: str = ANNA, method: str = "acp/send") -> Context:
        self.calls += 1
        stamp = START + int(self.at * SECOND) + self.calls
        node = Node(
            "aid://example.com/node@1.0.0",
            "mail",
            True,
            True,
            SigningKey(bytes(32)),
            acp=self.rules,
        )
        caller = Caller(agent_id, "mail", "verified", "key")
        return Context(self.db, caller, node, method, stamp, Transaction(self.db, stamp))

    def without_limits(self) -> "Office":
        self.rules = replace(self.rules, limits={})
        return self

    def post(self, agent_id: str = ANNA, *, charged: bool = True, **draft: Any) -> str:
        """Post a knowledge.push to Bert, unless `draft` says otherwise; its id."""
        given = {"type": "knowledge.push", "to": [BERT], "payload": {"summary": "s"}, **draft}
        if isinstance(given.get("policy"), dict):
            given["policy"] = ACPGivenPolicy(**given["policy"]).whole()
        envelope = mail.post(self.context(agent_id), Draft(**given), charged=charged)
        return str(envelope["id"])

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()


def aged(ctx: Context, kind: Ageing) -> tuple[int, int]:
    """How many messages were seen to, and how many dead letters these left."""
    found = kind.find(ctx, 100)
    return len(found), sum(kind.end(ctx, message_id) for message_id in found)
