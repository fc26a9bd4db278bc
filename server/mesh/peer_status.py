"""How the exchange with each peer goes, for `GET /peers`, `GET /mesh`, the page and the metrics."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from peers.sender import Sender
from schemas.base import iso, present
from server.domain.agents import identity
from server.domain.mesh_verdict import Equality, NodeCompared, equality
from server.mesh.anti_entropy import Comparison
from server.mesh.peer_tasks import PeerTasks
from server.mesh.send_progress import undelivered_of
from server.methods.sync import registration
from server.node import Node
from server.store import deferred, digests, equivocations, mail_outbox, peers
from server.store.connection import Connection
from server.store.database import Database
from server.store.peers import Peer


class PeerStatus:
    """Health, backlog, lag and clock of the peers in `running`, by their agent ids.

    What takes a connection may run in a thread of its own.
    """

    def __init__(self, database: Database, node: Node, running: Mapping[str, PeerTasks]) -> None:
        self._database = database
        self._node = node
        self._running = running

    def peers(self, db: Connection) -> list[dict[str, Any]]:
        """Every peer as schemas.sync.PeerSummary."""
        ahead = self.clocks_ahead()
        contradictions = equivocations.counts(db)
        # Peers that are up to date have the same cursor: it is counted once.
        waiting = cache(partial(self._waiting, db))
        since = cache(partial(self._since, db))
        return [
            registration.describe(peer)
            | present(
                {
                    "sync": self._state(db, peer, waiting, since),
                    "clockAheadSeconds": ahead.get(peer.agent_id),
                    "equivocations": contradictions.get(identity(peer.agent_id)),
                }
            )
            for peer in peers.every(db)
        ]

    def behind(self, db: Connection, seconds: float) -> int:
        """How many peers are down, or have waited for a change for so many seconds. Costs less than
        `peers`, which counts what waits."""
        since = cache(partial(self._since, db))
        return sum(
            _health(tasks.sender) == "down" or self._lag(since, tasks.sender) >= seconds
            for tasks in list(self._running.values())
        )

    def equality(self, db: Connection) -> Equality:
        """Whether the nodes of the mesh hold the same."""
        listed = peers.every(db)
        waiting = cache(partial(self._waiting, db))
        running = [
            (peer, self._running.get(peer.agent_id)) for peer in listed if peer.secret is not None
        ]
        return equality(
            [
                NodeCompared(peer.agent_id, is_up=False)
                if tasks is None or tasks.comparison is None
                else _compared(tasks, tasks.comparison, waiting(tasks.sender.cursor))
                for peer, tasks in running
            ],
            foreign=len(listed) - len(running),
            deferred=deferred.count(db),
        )

    def standings(self) -> dict[str, tuple[str, bool | None]]:
        """Whether each peer answers, and whether it held the same when it was last compared."""
        return {
            agent_id: (_health(tasks.sender), _is_equal(tasks.comparison))
            for agent_id, tasks in list(self._running.items())
        }

    def holdings(self, db: Connection) -> dict[str, Any]:
        """What this node holds, its digest, and its clock, for `GET /mesh`."""
        held = digests.held(db)
        database = self._database
        trouble = database.stamps.trouble(deferred.ahead(db, database.now()), str)
        body = {
            "agentId": self._node.agent_id,
            "repo": self._node.repo,
            "digest": held.digest,
            "behind": digests.is_behind(db),
            "projects": held.projects,
            "contracts": held.contracts,
            "packets": held.packets,
            "files": held.files,
            "conflicts": held.conflicts,
            "deferred": held.deferred,
            "clockCorrectionSeconds": self.clock_correction(),
            "clockTrouble": trouble and trouble._asdict(),
        }
        return present(body)

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

    def backlogs(self, db: Connection) -> dict[str, float]:
        """How many entities wait for each peer."""
        return self.of_senders(partial(_backlog, cache(partial(self._waiting, db))))

    def lags(self, db: Connection) -> dict[str, float]:
        """For how many seconds the oldest entity has waited for each peer."""
        return self.of_senders(partial(self._lag, cache(partial(self._since, db))))

    def clock_correction(self) -> float:
        """Seconds that are added to the machine's clock."""
        return self._database.clock.verdict.correction / 1e6

    def clocks_ahead(self) -> dict[str, int]:
        """How many seconds each peer's clock is ahead of the time, where it was measured."""
        clock = self._database.clock
        ahead = {
            agent_id: clock.ahead(agent_id)
            for agent_id, tasks in list(self._running.items())
            if tasks.comparison is not None
        }
        return {
            agent_id: round(microseconds / 1e6)
            for agent_id, microseconds in ahead.items()
            if microseconds is not None
        }

    def _state(
        self,
        db: Connection,
        peer: Peer,
        waiting: Callable[[int], int],
        since: Callable[[int], int | None],
    ) -> dict[str, Any] | None:
        """The PeerState of a peer; None while nothing is exchanged with it."""
        tasks = self._running.get(peer.agent_id)
        if tasks is None:
            return None
        sender, contact = tasks.sender, tasks.sender.last_contact
        undelivered = undelivered_of(sender)
        last = tasks.comparison.last if tasks.comparison else None
        state = {
            "health": _health(sender),
            "backlog": _backlog(waiting, sender),
            "undelivered": len(sender.undelivered),
            "undeliveredEntities": undelivered or None,
            "mail": mail_outbox.count_entries(db, node=peer.agent_id),
            "lagSeconds": round(self._lag(since, sender), 3),
            "lastContact": iso(int(contact * 1e6)) if contact is not None else None,
            "lastError": sender.last_error or (undelivered[0]["reason"] if undelivered else None),
            "retries": sender.retries,
            "digestRounds": tasks.comparison.rounds if tasks.comparison else 0,
            "comparedAt": iso(last.at) if last else None,
            "isEqual": _is_equal(tasks.comparison),
            "differing": (dict(last.differing) or None) if last else None,
        }
        return present(state)

    def _waiting(self, db: Connection, cursor: int) -> int:
        return peers.backlog(db, cursor, self._node.agent_id)

    def _since(self, db: Connection, cursor: int) -> int | None:
        return peers.waiting_since(db, cursor, self._node.agent_id)

    def _lag(self, since: Callable[[int], int | None], sender: Sender) -> float:
        oldest = since(sender.confirmed)
        return 0.0 if oldest is None else max(0.0, (self._database.now() - oldest) / 1e6)


def verdict_of(judged: Equality) -> dict[str, Any]:
    """An Equality as schemas.mesh.MeshVerdict."""
    at = judged.compared_at
    return present(judged._asdict() | {"compared_at": None, "comparedAt": at and iso(at)})


def _compared(tasks: PeerTasks, comparison: Comparison, waiting: int) -> NodeCompared:
    last, sender = comparison.last, tasks.sender
    is_up = not sender.failures
    backlog = waiting + len(sender.undelivered)
    if last is None:
        return NodeCompared(sender.agent_id, is_up, backlog=backlog)
    return NodeCompared(
        sender.agent_id, is_up, last.at, last.is_equal, last.differing, backlog=backlog
    )


def _is_equal(comparison: Comparison | None) -> bool | None:
    return None if comparison is None or comparison.last is None else comparison.last.is_equal


def _health(sender: Sender) -> str:
    return "down" if sender.failures else "up" if sender.last_contact else "unknown"


def _backlog(waiting: Callable[[int], int], sender: Sender) -> int:
    return waiting(sender.cursor) + len(sender.undelivered)
