"""Keeps on disk how far each peer has confirmed changes, and what it has not taken.

The rows also control a running sender: an entity that an operator drops there is not tried again,
and one that `cacp/sync/pull` could not send is kept like one that the peer refused.
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from peers.digest import Name
from peers.sender import Sender, UndeliveredEntity
from server.store import peers, undelivered
from server.store.database import Database
from server.store.group_commit import Transaction

SHOWN = 100
"""Entities that a peer has not taken and that `GET /peers` lists."""


def undelivered_of(sender: Sender) -> list[dict[str, Any]]:
    """The first entities that a peer has not taken, as schemas.mesh.Undelivered."""
    return [
        {
            "entity": name.entity,
            "projectId": name.project_id,
            "entityId": name.entity_id,
            "reason": entity.reason,
            "tries": entity.tries,
        }
        for name, entity in islice(sender.undelivered.items(), SHOWN)
    ]


class SavedProgress(NamedTuple):
    """The progress of a sender as it is on disk."""

    cursor: int
    undelivered: Mapping[Name, UndeliveredEntity]


class SendProgress:
    """Keeps the progress of senders."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._saved: dict[str, SavedProgress] = {}

    async def begin(self, sender: Sender) -> None:
        """Restore what a sender's peer had not taken."""
        entities = (await self._database.read(undelivered.every)).get(sender.agent_id, {})
        sender.restore(entities)
        self._saved[sender.agent_id] = SavedProgress(sender.cursor, entities)

    async def keep(self, senders: Mapping[str, Sender]) -> None:
        """Write down what has changed since the last time, after taking over the rows that others
        changed."""
        rows = await self._database.read(undelivered.every)
        for agent_id, sender in senders.items():
            self._take_over(sender, rows.get(agent_id, {}))
        news = [sender for sender in senders.values() if self._has_news(sender)]
        if news:
            now = {
                sender.agent_id: SavedProgress(sender.cursor, sender.undelivered) for sender in news
            }
            contacts = {sender.agent_id: int((sender.last_contact or 0) * 1e6) for sender in news}
            await self._database.write(partial(self._write, now, contacts))
            self._saved |= now

    def _take_over(self, sender: Sender, rows: Mapping[Name, UndeliveredEntity]) -> None:
        saved = self._saved[sender.agent_id]
        dropped = saved.undelivered.keys() - rows.keys()
        if dropped:
            sender.drop(dropped)
        for name in rows.keys() - saved.undelivered.keys() - sender.undelivered.keys():
            sender.enqueue(name, rows[name].reason)
        if rows.keys() != saved.undelivered.keys():
            known = {name: saved.undelivered.get(name, row) for name, row in rows.items()}
            self._saved[sender.agent_id] = saved._replace(undelivered=known)

    def _has_news(self, sender: Sender) -> bool:
        saved = self._saved[sender.agent_id]
        return saved.cursor != sender.cursor or saved.undelivered is not sender.undelivered

    def _write(
        self,
        now: Mapping[str, SavedProgress],
        contacts: Mapping[str, int],
        transaction: Transaction,
    ) -> None:
        db = transaction.connection
        for agent_id, progress in now.items():
            before = self._saved[agent_id].undelivered
            peers.put_cursor(db, agent_id, progress.cursor, contacts[agent_id])
            changed = {
                name: entity
                for name, entity in progress.undelivered.items()
                if before.get(name) is not entity
            }
            undelivered.put(db, agent_id, changed)
            for name in before.keys() - progress.undelivered.keys():
                undelivered.forget(db, agent_id, name)
