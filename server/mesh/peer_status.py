"""How the exchange with each peer goes, for `GET /peers` and the metrics."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from peers.sender import Sender
from schemas.base import iso, present
from server.mesh.anti_entropy import Comparison
from server.mesh.peer_tasks import PeerTasks
from server.mesh.send_progress import undelivered_of
from server.node import Node
from server.store import mail_outbox, peers
from server.store.database import Database
from server.store.peers import Peer


class PeerStatus:
    """Health, backlog, lag and clock of the peers in `running`, by their agent ids."""

    def __init__(self, database: Database, node: Node, running: Mapping[str, PeerTasks]) -> None:
        self._database = database
        self._node = node
        self._running = running

    def of(self, peer: Peer) -> dict[str, Any] | None:
        """The PeerState of a peer; None while nothing is exchanged with it."""
        tasks = self._running.get(peer.agent_id)
        if tasks is None:
            return None
        sender, contact = tasks.sender, tasks.sender.last_contact
        undelivered = undelivered_of(sender)
        state = {
            "health": "down" if sender.failures else "up" if contact else "unknown",
            "backlog": self._backlog(sender),
            "undelivered": len(sender.undelivered),
            "undeliveredEntities": undelivered or None,
            "mail": self._database.read(partial(mail_outbox.count_entries, node=peer.agent_id)),
            "lagSeconds": round(self._lag(sender), 3),
            "lastContact": iso(int(contact * 1e6)) if contact is not None else None,
            "lastError": sender.last_error or (undelivered[0]["reason"] if undelivered else None),
            "retries": sender.retries,
            "digestRounds": tasks.comparison.rounds if tasks.comparison else 0,
        }
        return present(state)

    def of_senders(self, value: Callable[[Sender], float]) -> dict[str, float]:
        """A value of each peer's sender."""
        return {agent_id: value(tasks.sender) for agent_id, tasks in self._running.items()}

    def of_comparisons(self, value: Callable[[Comparison], float]) -> dict[str, float]:
        """A value of each mesh peer's comparison."""
        return {
            agent_id: value(tasks.comparison)
            for agent_id, tasks in self._running.items()
            if tasks.comparison is not None
        }

    def backlogs(self) -> dict[str, float]:
        """How many entities wait for each peer."""
        return self.of_senders(self._backlog)

    def lags(self) -> dict[str, float]:
        """For how many seconds the oldest entity has waited for each peer."""
        return self.of_senders(self._lag)

    def clock_correction(self) -> float:
        """Seconds that are added to the machine's clock."""
        return self._database.clock.verdict.correction / 1e6

    def clocks_ahead(self) -> dict[str, int]:
        """How many seconds each peer's clock is ahead of the time, where it was measured."""
        clock = self._database.clock
        ahead = {
            agent_id: clock.ahead(agent_id)
            for agent_id, tasks in self._running.items()
            if tasks.comparison is not None
        }
        return {
            agent_id: round(microseconds / 1e6)
            for agent_id, microseconds in ahead.items()
            if microseconds is not None
        }

    def _backlog(self, sender: Sender) -> int:
        pending = partial(peers.backlog, cursor=sender.cursor, origin=self._node.agent_id)
        return self._database.read(pending) + len(sender.undelivered)

    def _lag(self, sender: Sender) -> float:
        oldest = partial(peers.waiting_since, cursor=sender.confirmed, origin=self._node.agent_id)
        since = self._database.read(oldest)
        return 0.0 if since is None else max(0.0, (self._database.now() - since) / 1e6)
