"""An honest node in the process of a test, with a clock that the test moves: its own database,
dispatcher, links, comparisons, and all that takes in, as `server.app` and `server.mesh.supervisor`
make them.
Only the network is the test's, and when each part acts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from peers.client import HttpAnswer, HttpClient
from peers.errors import CallError, NotConnected
from peers.signing import SigningKey
from peers.timekeeper import Timekeeper
from server.app import make_dispatcher
from server.auth.authenticator import Caller
from server.http.metrics import Metrics
from server.mesh.supervisor import Supervisor
from server.methods import METHODS
from server.methods.base import Context
from server.node import Node
from server.rpc.dispatch import RequestContext
from server.settings import Settings
from server.store import changes, digests, peers
from server.store import mesh as store
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.stamps import Stamps
from server.util.loops import Loop, Loops
from tests.support.located import connect, location_of, prepare
from tests.support.mesh import agent_of, state

DAY = 86_400_000_000
BODY_LIMIT = 1024 * 1024
PAGES = 20
"""Pages of changes that are told at once, at most."""

Route = Callable[[str, str, bytes], Awaitable[bytes]]
"""Brings a body from one member to another, and its answer back. Raises NotConnected."""


def key_of(name: str) -> SigningKey:
    return SigningKey(sha256(name.encode()).digest())


def url_of(name: str) -> str:
    return f"http://{name}.example.com"


class Wire(HttpClient):
    """The network as a node's client sees it."""

    def __init__(self, name: str, route: Route) -> None:
        super().__init__(lambda _: None, lambda _: None)
        self._name = name
        self._route = route

    async def send(self, method: str, url: str, *, content: bytes = b"", **_: Any) -> HttpAnswer:
        target = url.removeprefix("http://").partition(".")[0]
        return HttpAnswer(200, await self._route(self._name, target, content))


class Still(Loops):
    """Starts nothing: the test says when each part acts."""

    def start(
        self, name: str, loop: Loop, *, ends: bool = False, **about: str
    ) -> "asyncio.Task[None]":
        return asyncio.create_task(asyncio.sleep(0))


class Honest:
    """A node named `name`. `time` tells the true time, microseconds since 1970; the node's clock is
    `skew` ahead of it."""

    def __init__(self, folder: Path, name: str, time: Callable[[], int], route: Route) -> None:
        self.name = name
        self.agent = agent_of(name)
        self.skew = 0
        self.db = folder / f"{name}.db"
        self.cursors: dict[str, int] = {}
        self._time = time
        self._route = route

    async def begin(self, members: list[str]) -> None:
        """Meet the other members: as if each pair had shaken hands."""
        prepare(self.db, "NORMAL")
        await self._open()

        def meet(transaction: Transaction) -> None:
            db = transaction.connection
            for other in members:
                agent = agent_of(other)
                store.pin(db, agent, key_of(other).public)
                peers.put(db, agent, url_of(other), other, "verified", 1)
                peers.put_keys(db, agent, "secret", "key")

        await self.database.write(meet)
        await self._link()

    async def restart(self) -> None:
        """Stop, and start on what is on disk."""
        await self.end()
        await self._open()
        await self._link()

    async def end(self) -> None:
        await self.mesh.files.stop()
        await self.database.close()

    async def _open(self) -> None:
        stamps = Stamps()
        stamps.clock = Timekeeper(lambda: self._time() + self.skew, self._time)
        self.database = Database(location_of(self.db), "NORMAL", stamps)
        await self.database.open(prepare(self.db, "NORMAL").last_stamp)
        self.node = Node(self.agent, self.name, True, True, key_of(self.name), url_of(self.name))
        settings = Settings(db=self.db, agent_id=self.agent, repo=self.name)
        self.mesh = Supervisor(settings, self.database, self.node, Still())
        wire = Wire(self.name, self._route)
        self.mesh._shared.client = self.mesh.exchange.deferred._client = wire
        self.mesh._shared.settling.settled.set()
        self.dispatcher = make_dispatcher(
            settings, self.database, self.node, Metrics(), asyncio.Event(), self.mesh
        )

    async def _link(self) -> None:
        await self.mesh.links.match(exchanges=False)

    # --- what comes in ------------------------------------------------------------------------

    async def answer(self, source: str, body: bytes) -> bytes:
        """The answer to a body that a member has sent over HTTP with its key."""
        caller = Caller(agent_of(source), source, "peer", "key")
        context = RequestContext(caller, body_size=len(body), body_limit=BODY_LIMIT)
        found = await self.dispatcher.answer(body, context) or b""
        return b"".join(found) if isinstance(found, list) else found

    async def call(self, method: str, /, **params: Any) -> Any:
        """A call by the node's own agent. Raises Refusal."""
        found = METHODS[method]
        given = found.params.model_validate(params, by_alias=True)
        caller = Caller(self.agent, self.name, "verified", "local")

        def run(one: Transaction) -> Any:
            context = Context(one.connection, caller, self.node, method, one.stamp, one)
            return found.run(context, given)

        return await self.database.write(run)

    # --- what it does by itself ---------------------------------------------------------------

    async def tell(self, other: str) -> None:
        """Tell a member what has changed here, as far as the network lets it."""
        peer = await self.database.read(partial(peers.find, agent_id=agent_of(other)))
        assert peer is not None
        tasks = self.mesh.links.tasks[peer.agent_id]
        assert tasks.mesh_channel is not None
        for _ in range(PAGES):
            page = await tasks.load(self.cursors.get(other, 0))
            with suppress(CallError):
                if page.names:
                    await tasks.mesh_channel.deliver(page.names)
                self.cursors[other] = page.cursor
                if page.more:
                    continue
            return

    async def compare(self, other: str) -> bool:
        """Compare with a member, and fetch what differs; whether it came to an end."""
        agent = agent_of(other)
        comparison = self.mesh.links.tasks[agent].comparison
        assert comparison is not None
        try:
            return await comparison.round(partial(self.mesh._shared.settling.heard_time, agent))
        except CallError:
            return False

    async def take_due(self) -> None:
        """Take in what was deferred and is due."""
        async for failed in self.mesh.exchange.deferred.run():
            assert failed is None, failed
            return

    def judge(self) -> None:
        self.database.clock.judge(self.mesh.links.tasks)

    async def count(self) -> str:
        """The digest of all that it holds."""
        while not await self.database.write(lambda one: digests.catch_up(one.connection)):
            pass
        return await self.database.read(lambda db: digests.held(db).digest)

    # --- what it holds ------------------------------------------------------------------------

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(connect(self.db)) as db:
            return db.execute(sql, values).fetchall()

    def state(self) -> str:
        return state(self)

    async def newest(self) -> int:
        return await self.database.read(changes.newest)


async def unreachable(source: str, target: str, body: bytes) -> bytes:
    raise NotConnected("can't be reached")


def decoded(body: bytes) -> list[dict[str, Any]]:
    """The calls in a body."""
    found = orjson.loads(body)
    return found if isinstance(found, list) else [found]
