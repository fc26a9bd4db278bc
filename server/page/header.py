"""What the header of every page says of the node: its health, who is awake, and its mesh."""

import time
from collections.abc import Callable
from typing import Any

from schemas.base import present
from server.domain.agent_list import AWAKE
from server.http.routes import AppState
from server.methods.acp import route
from server.methods.base import Context
from server.store import peers
from server.store.connection import Connection

FRESH_SECONDS = 1.0
"""For how long the facts are shown as they were read."""
LAG_SECONDS = 10.0
"""From how many seconds on a peer counts as behind: a shorter lag is that of any change."""

Facts = dict[str, Any]


class HeaderFacts:
    """The facts of all headers, read at most once in a second."""

    def __init__(self, state: AppState, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._clock = clock
        self._read_at = -FRESH_SECONDS
        self._facts: Facts = {}

    def of(self, ctx: Context) -> Facts:
        """The facts that the caller may know: its health is public, the rest is for callers whose
        key is for all projects."""
        facts = self.all(ctx.db)
        if ctx.caller.projects is None:
            return facts
        return {name: facts[name] for name in ("health", "reason") if name in facts}

    def all(self, db: Connection) -> Facts:
        """All facts."""
        now = self._clock()
        if now - self._read_at >= FRESH_SECONDS:
            self._facts, self._read_at = self._read(db), now
        return self._facts

    def _read(self, db: Connection) -> Facts:
        state = self._state
        health, mesh = state.checkup.seen(db), state.mesh.status.equality(db)
        facts = {
            "health": health.status,
            "reason": health.reason,
            **self._agents(db),
            "peers": len(peers.every(db)),
            "behind": state.mesh.status.behind(db, LAG_SECONDS),
            "mesh": mesh.state,
            "sentence": mesh.sentence,
        }
        return present(facts)

    def _agents(self, db: Connection) -> Facts:
        """How many agents have their home here, and how many of them are awake, as
        `cacp/agent/overview` counts them."""
        state = self._state
        now = state.database.now()
        ctx = Context(db, state.node.caller, state.node, "page/header", now)
        own = [address for address, home in route.everyone(ctx).items() if home is None]
        seen = state.node.last_calls
        awake = sum(now - seen.get(address, -AWAKE) <= AWAKE for address in own)
        return {"agents": len(own), "awake": awake}
