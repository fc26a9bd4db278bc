"""How far each peer is told, and what it has not taken: kept on disk while senders go on.

The rows are also how others reach a running sender: what an operator drops there is tried no more,
what `cacp/sync/pull` finds not to be sendable is held like what the peer refuses.
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from peers.digest import Name
from peers.sender import Held, Sender
from server.store import peers, undelivered
from server.store.database import Database, Transaction

SHOWN = 100
"""Entities that a peer has not taken, of which `GET /peers` tells."""


def told_of(sender: Sender) -> list[dict[str, Any]]:
    """What a peer has not taken, the first of it, as schemas.mesh.Undelivered."""
    return [
        {
            "entity": name.entity,
            "projectId": name.project_id,
            "entityId": name.entity_id,
            "reason": one.reason,
            "tries": one.tries,
        }
        for name, one in islice(sender.held.items(), SHOWN)
    ]


class SavedProgress(NamedTuple):
    """What is on disk of a sender."""

    cursor: int
    held: Mapping[Name, Held]


class SendProgress:
    """Keeps the progress of senders."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._saved: dict[str, SavedProgress] = {}

    def begin(self, sender: Sender) -> None:
        """Give a sender what its peer had not taken when that was last written down."""
        held = self._database.read(undelivered.every).get(sender.agent_id, {})
        sender.restore(held)
        self._saved[sender.agent_id] = SavedProgress(sender.cursor, held)

    async def keep(self, senders: Mapping[str, Sender]) -> None:
        """Write down what has changed since the last time, after taking over what others wrote."""
        rows = self._database.read(undelivered.every)
        for agent_id, sender in senders.items():
            self._take_over(sender, rows.get(agent_id, {}))
        news = [one for one in senders.values() if self._has_news(one)]
        if news:
            now = {one.agent_id: SavedProgress(one.cursor, one.held) for one in news}
            contacts = {one.agent_id: int((one.last_contact or 0) * 1e6) for one in news}
            await self._database.write(partial(self._write, now, contacts))
            self._saved |= now

    def _take_over(self, sender: Sender, rows: Mapping[Name, Held]) -> None:
        saved = self._saved[sender.agent_id]
        dropped = saved.held.keys() - rows.keys()
        if dropped:
            sender.drop(dropped)
        for name in rows.keys() - saved.held.keys() - sender.held.keys():
            sender.owe(name, rows[name].reason)
        if rows.keys() != saved.held.keys():
            known = {name: saved.held.get(name, row) for name, row in rows.items()}
            self._saved[sender.agent_id] = saved._replace(held=known)

    def _has_news(self, sender: Sender) -> bool:
        saved = self._saved[sender.agent_id]
        return saved.cursor != sender.cursor or saved.held is not sender.held

    def _write(
        self,
        now: Mapping[str, SavedProgress],
        contacts: Mapping[str, int],
        transaction: Transaction,
    ) -> None:
        db = transaction.connection
        for agent_id, one in now.items():
            before = self._saved[agent_id].held
            peers.put_cursor(db, agent_id, one.cursor, contacts[agent_id])
            changed = {name: it for name, it in one.held.items() if before.get(name) is not it}
            undelivered.put(db, agent_id, changed)
            for name in before.keys() - one.held.keys():
                undelivered.forget(db, agent_id, name)
