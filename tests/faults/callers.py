"""Agents that write through the node's own methods, on its own writer, and note what they are told.

All but HTTP is the product's: claim, migrations, dispatcher, group commit, checkpoints, health.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.domain.acp.handoff import HeldElsewhere
from server.domain.acp.rules import MailRules
from server.domain.errors import Refusal
from server.http.health import HealthCheck
from server.methods import METHODS
from server.node import Node
from server.rpc.answer_budget import AnswerBudget
from server.rpc.dispatch import Dispatcher, RequestContext
from server.store import digests, keys, stamps
from server.store.database import Database
from server.store.files import File
from server.store.group_commit import Transaction
from server.store.sqlite import connection, storage
from server.store.sqlite.connection import Durability
from server.store.sqlite.file_lock import lock
from server.store.sqlite.migrate import prepare
from tests.faults.account import Account
from tests.support.in_process_node import package
from tests.support.node import AGENT, REPO, RpcError, check_result
from tests.support.team import FRONTEND, FRONTEND_AGENT, REPOS

ANA = "aid://example.com/ana"
BEN = "aid://example.com/ben"
REPOS_OF = {AGENT: REPO, FRONTEND_AGENT: FRONTEND, ANA: "mail", BEN: "mail"}
STAGES: list[tuple[str, str, dict[str, Any]]] = [
    (FRONTEND_AGENT, "contract/respond", {"action": "request_change", "comment": "paginate"}),
    (AGENT, "contract/update", {"content": {"path": "/v2"}, "changeNote": "paginated"}),
    (FRONTEND_AGENT, "contract/respond", {"action": "agree"}),
    (AGENT, "implementation/complete", {"files": ["a.py"]}),
]
"""What is called after a proposal; each adds one fact."""


class Alone:
    """The other nodes of one that has none."""

    async def forward(self, call: HeldElsewhere) -> Any:
        raise AssertionError(f"{call.node} holds no handoff")

    async def fetch(self, project_id: str, file: File, *, direct: bool = False) -> bytes:
        raise AssertionError("nothing is held elsewhere")


class RecordedNode:
    """A running node's methods. Makes an account of what its callers are told, if given one."""

    def __init__(self, db: Database, last_stamp: int, account: Account | None = None) -> None:
        self.database = db
        self.last_stamp = last_stamp
        self.account = account
        self.health = HealthCheck(db)
        self.project = ""
        self.newest = 0
        node = Node(AGENT, REPO, True, True, SigningKey(bytes(32)), acp=MailRules(limits={}))
        self._dispatcher = Dispatcher(
            METHODS,
            db,
            node,
            100,
            lambda *_: None,
            asyncio.Event(),
            Alone(),
            AnswerBudget(2**26, 2**27),
        )

    async def call(
        self, agent: str, method: str, /, idempotency_key: str | None = None, **params: Any
    ) -> Any:
        """The result. Raises RpcError."""
        caller = Caller(agent, REPOS_OF[agent], "verified", "key")
        body = orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1})
        answer = await self._dispatcher.answer(body, RequestContext(caller, idempotency_key))
        assert isinstance(answer, bytes)
        response = orjson.loads(answer)
        if "error" in response:
            error = response["error"]
            raise RpcError(error["code"], error["message"], error.get("data"))
        check_result(method, response["result"])
        return response["result"]

    async def told(self, what: str, *value: Any) -> None:
        """Note that a caller has its answer, and how far the stamps are."""
        if self.account is None:
            return
        # On a disk that fails to read, that of before is good enough.
        with suppress(Refusal):
            self.newest = await self.database.read(stamps.newest_stamp)
        self.account.told(what, (*value, self.newest))

    async def found(self) -> None:
        """Make the keys of the callers, and the project that they work on."""
        await self.database.write(_add_keys)
        made = await self.call(
            AGENT, "cacp/project/create", name="Auth", objective="Login", repos=REPOS
        )
        self.project = made["projectId"]
        await self.call(
            FRONTEND_AGENT, "cacp/project/join", projectId=self.project, repoName=FRONTEND
        )


@asynccontextmanager
async def started(
    path: Path, durability: Durability = "FULL", account: Account | None = None
) -> AsyncIterator[RecordedNode]:
    """A node, started on a file as `serve` starts it."""
    claimed = lock(path)
    try:
        prepared = prepare(path, durability)
        opened = Database(path, durability)
        await opened.open(prepared.last_stamp)
        try:
            yield RecordedNode(opened, prepared.last_stamp, account)
        finally:
            await opened.close()
    finally:
        if claimed is not None:
            os.close(claimed)


def _add_keys(transaction: Transaction) -> None:
    for agent, repo in REPOS_OF.items():
        keys.add(transaction.connection, keys.new_key(), agent_id=agent, repo=repo, now=1)


# --- callers --------------------------------------------------------------------------------------

Step = Callable[[], Awaitable[None]]


def contracts(node: RecordedNode, dice: Random) -> Step:
    """Proposes, and takes what is proposed on; shares context in between."""
    stages: dict[str, int] = {}

    async def step() -> None:
        project = {"projectId": node.project}
        open_ = [one for one, stage in stages.items() if stage < len(STAGES)]
        if dice.random() < 0.2:
            content = {"text": "x" * dice.randrange(9_000)}
            shared = await node.call(
                AGENT, "cacp/context/share", type="api_spec", content=content, **project
            )
            await node.told("packet", shared["packetId"])
        elif open_ and dice.random() < 0.7:
            contract = dice.choice(open_)
            who, method, params = STAGES[stages[contract]]
            await node.call(who, f"cacp/{method}", contractId=contract, **params, **project)
            stages[contract] += 1
            await node.told("contract", contract, stages[contract])
        else:
            made = await node.call(AGENT, "cacp/contract/propose", **PROPOSAL, **project)
            stages[made["contractId"]] = 0
            await node.told("contract", made["contractId"], 0)

    return step


def retries(node: RecordedNode, dice: Random) -> Step:
    """Proposes by an Idempotency-Key, and asks again what it has asked."""
    known: dict[str, str] = {}
    mine = dice.getrandbits(64)

    async def step() -> None:
        key = dice.choice([*known, f"{mine}-{len(known)}"])
        made = await node.call(
            AGENT, "cacp/contract/propose", key, projectId=node.project, **PROPOSAL
        )
        assert known.setdefault(key, made["contractId"]) == made["contractId"]
        await node.told("retry", key, made["contractId"])

    return step


def mail(node: RecordedNode, dice: Random, agent: str, other: str) -> Step:
    """Sends messages, reads its inbox and acknowledges."""
    mine, sent = dice.getrandbits(64), 0

    async def step() -> None:
        nonlocal sent
        if dice.random() < 0.6:
            sent += 1
            made = await node.call(
                agent,
                "acp/send",
                to=[other],
                type="knowledge.push",
                payload={"summary": "s" * dice.randrange(1, 2_000)},
                client_id=f"{mine}-{sent}",
            )
            await node.told("message", made["message"]["id"], other)
            return
        listed = await node.call(agent, "acp/inbox", limit=3)
        if ids := [one["id"] for one in listed["messages"]]:
            await node.call(agent, "acp/ack", message_ids=ids)
            await node.told("acknowledged", ids, agent)

    return step


def handoffs(node: RecordedNode, dice: Random) -> Step:
    """Hands tasks over and takes them."""
    offered: list[str] = []
    mine, made = dice.getrandbits(64), 0

    async def step() -> None:
        nonlocal made
        if offered and dice.random() < 0.6:
            handoff = offered[0]
            await node.call(BEN, "acp/handoff", action="accept", handoff_id=handoff)
            offered.remove(handoff)
            await node.told("handoff", handoff, "accepted")
            return
        made += 1
        what = package(f"{mine}-{made}")
        result = await node.call(
            ANA, "acp/handoff", action="initiate", to=BEN, reason="End of shift", package=what
        )
        offered.append(result["handoff"]["handoffId"])
        await node.told("handoff", offered[-1], "proposed")

    return step


def counting(node: RecordedNode) -> Step:
    """Counts what changed into the digests, as the mesh does."""

    async def step() -> None:
        await node.database.write(lambda transaction: digests.catch_up(transaction.connection))

    return step


PROPOSAL: dict[str, Any] = {
    "type": "api_endpoint",
    "name": "Get User Profile",
    "content": {"method": "GET", "path": "/users"},
}


def every(node: RecordedNode, dice: Random) -> list[Step]:
    """One step each of all callers that there are."""
    return [
        *(contracts(node, Random(dice.random())) for _ in range(3)),
        retries(node, Random(dice.random())),
        mail(node, Random(dice.random()), ANA, BEN),
        mail(node, Random(dice.random()), BEN, ANA),
        handoffs(node, Random(dice.random())),
        counting(node),
    ]


async def work(steps: list[Step], rounds: int) -> None:
    """All callers at once, each step after step."""

    async def go(step: Step) -> None:
        for _ in range(rounds):
            await step()

    async with asyncio.TaskGroup() as group:
        for step in steps:
            group.create_task(go(step))


async def lives(
    path: Path, account: Account, dice: Random, durability: Durability, rounds: list[int]
) -> None:
    """A node that is started and stopped again and again, with callers at work each time."""
    project = ""
    for some in rounds:
        async with started(path, durability, account) as node:
            if not project:
                await node.found()
                await node.told("found")
            project = node.project = project or node.project
            await work(every(node, dice), some)


def small_log(patch: pytest.MonkeyPatch) -> None:
    """Checkpoints often, so that all phases of a log come in a short time."""
    patch.setattr(storage, "WAL_CHECKPOINT", 150_000)
    patch.setattr(connection, "WAL_TARGET", 100_000)
    patch.setattr(storage, "connect", partial(_small_cache, connection.connect))


def _small_cache(real: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """A connection that writes to the log before it commits, when a transaction is large."""
    connection = real(*given, **more)
    try:
        connection.execute("PRAGMA cache_size=20")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
