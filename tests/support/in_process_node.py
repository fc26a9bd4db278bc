"""Methods on a real database without a process: for many calls, by any agent, at any time."""

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import orjson
import pytest

from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.domain.acp.handoff import HandoffRules, HeldElsewhere
from server.domain.acp.rules import MailRules
from server.domain.errors import Refusal
from server.methods import METHODS
from server.methods.base import CallSession, Context, Method
from server.node import Node
from server.store import keys
from server.store.group_commit import Transaction
from server.store.opening import connect
from tests.support.attention_check import check_attention
from tests.support.fresh_store import content_of, fresh_store
from tests.support.node import AGENT, REPO, check_result

ANA = "aid://example.com/ana"
BEN = "aid://example.com/ben"
CLEO = "aid://example.com/cleo"
DORA = "aid://example.com/dora"
HUMAN = "aid://example.com/hugh"
BEGIN = 1_800_000_000_000_000
HOUR = 3_600_000_000


@dataclass
class InProcessSession:
    """A call that reads on both sides of its write, in this thread."""

    within: "InProcessNode"
    caller: Caller
    method: str

    @property
    def node(self) -> Node:
        return self.within.node

    async def read_wide(self, function: Callable[[Context], Any]) -> Any:
        return self.within.run(function, self.caller, self.method)


class InProcessNode:
    """A node's database, its methods, and a clock that tests move."""

    def __init__(self, folder: Path, *, rules: HandoffRules = HandoffRules()) -> None:  # noqa: B008
        self._store = ExitStack()
        self.location = self._store.enter_context(fresh_store(folder / "desk.db"))
        # What a crash leaves is not what these tests are about.
        self.db = connect(self.location, durability="NORMAL")
        self.db.execute("BEGIN IMMEDIATE")
        for agent in (ANA, BEN, CLEO, DORA, HUMAN):
            keys.add(self.db, keys.new_key(), agent_id=agent, repo="r", now=BEGIN)
        self.db.execute("COMMIT")
        self.now = BEGIN
        self.node = Node(
            agent_id=AGENT,
            repo=REPO,
            loopback=True,
            takes_unkeyed_peers=False,
            key=SigningKey(b"0" * 32),
            acp=MailRules(limits={}),
            handoffs=rules,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            check_attention(self.db)
        finally:
            self.close()

    def close(self) -> None:
        self.db.close()
        self._store.close()

    def call(self, method: str, agent: str, *, human: bool = False, **params: Any) -> Any:
        """The result of a call by an agent; a refusal is raised as it is and changes nothing. With
        `operator=True` it has the operator's key."""
        operator = bool(params.pop("operator", False))
        caller = Caller(agent, "r", "verified", "key", human=human, operator=operator)
        return self.call_as(caller, method, **params)

    def call_as(self, caller: Caller, method: str, **params: Any) -> Any:
        """The result of a call by this caller."""
        found = METHODS[method]
        checked = found.params.model_validate(params, by_alias=True)
        result = self.answered(found, caller, checked)
        if isinstance(result, HeldElsewhere):
            return result
        wire = json.loads(orjson.dumps(result))
        check_result(method, wire)
        return wire

    def answered(self, method: Method, caller: Caller, params: Any) -> Any:
        """What a method returns, with what belongs around its transaction."""

        def run(ctx: Context) -> Any:
            return method.run(ctx, params)

        if method.around is None:
            return self.run(run, caller, method.name)
        session = cast(CallSession, InProcessSession(self, caller, method.name))

        async def write() -> Any:
            return self.run(run, caller, method.name)

        return asyncio.run(method.around(session, params, write))

    def run(
        self, function: Callable[[Context], Any], caller: Caller | None = None, method: str = "test"
    ) -> Any:
        """Run a function in a transaction, as the node itself unless another is named."""
        self.now += 1
        caller = caller or Caller(AGENT, REPO, "verified", "local")
        transaction = Transaction(self.db, self.now, self.now)
        context = Context(self.db, caller, self.node, method, self.now, transaction)
        self.db.execute("BEGIN IMMEDIATE")
        try:
            result = function(context)
            self.db.execute("COMMIT")
            return result
        except BaseException:
            self.db.execute("ROLLBACK")
            raise

    def refused(
        self,
        kind: type[Refusal],
        agent: str,
        action: str,
        method: str = "acp/handoff",
        **params: Any,
    ) -> Any:
        """The data of a refusal, which has changed nothing."""
        before = content_of(self.db)
        with pytest.raises(kind) as error:
            self.call(method, agent, action=action, **params)
        assert content_of(self.db) == before
        return error.value.data

    def handoff(self, agent: str, action: str, **params: Any) -> Any:
        return self.call("acp/handoff", agent, action=action, **params)

    def team(self, agent: str, action: str, **params: Any) -> Any:
        return self.call("acp/team", agent, action=action, **params)

    def offered(self, sender: str = ANA, receiver: str = BEN, **params: Any) -> str:
        """The id of a handoff that is proposed."""
        given = {"to": receiver, "reason": "End of shift", "package": package(), **params}
        return str(self.handoff(sender, "initiate", **given)["handoff"]["handoffId"])

    def accepted(self, sender: str = ANA, receiver: str = BEN, **params: Any) -> str:
        handoff_id = self.offered(sender, receiver, **params)
        self.handoff(receiver, "accept", handoff_id=handoff_id)
        return handoff_id

    def status(self, handoff_id: str) -> str:
        ((status,),) = self.rows("SELECT status FROM handoffs WHERE id = ?", handoff_id)
        return str(status)

    def mail(self, agent: str) -> list[tuple[str, dict[str, Any]]]:
        """What came to an agent, as (type, payload), oldest first."""
        rows = self.rows(
            "SELECT m.type, m.payload_json FROM delivery_log d JOIN messages m"
            " ON m.id = d.message_id WHERE d.recipient = ? ORDER BY d.id",
            agent,
        )
        return [(type, json.loads(payload)) for type, payload in rows]

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()


def package(task_id: str = "task-1", **changes: Any) -> dict[str, Any]:
    """A HandoffDraft; a change of a part is merged into it."""
    whole: dict[str, Any] = {
        "task": {
            "task_id": task_id,
            "title": "Move the login to tokens",
            "objective": "Users sign in with tokens",
            "success_criteria": ["the login tests pass"],
            "priority": "normal",
        },
        "context": {"summary": "The server side is done."},
        "work_state": {"status": "in_progress", "next_step": "Write the client."},
        "artifacts": [],
        "provenance": {"origin_session": "session-1"},
        "policy": {"classification": "internal", "requires_human_approval": False},
    }
    for name, change in changes.items():
        whole[name] = whole[name] | change if isinstance(change, dict) else change
    return whole
