"""How the exchange with each peer goes, for `GET /peers`, `GET /mesh`, the page and the metrics."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from schemas.base import iso, present
from server.domain.agents import identity
from server.domain.mesh_verdict import Equality, NodeCompared, equality
from server.mesh.peer_facts import PeerFacts
from server.methods.sync import registration
from server.node import Node
from server.store import deferred, digests, equivocations, mail_outbox, peers
from server.store.connection import Connection
from server.store.database import Database
from server.store.peers import Peer


class PeerStatus:
    """Health, backlog, lag and clock of the peers. `facts` returns what is known of each now, by
    its agent id.

    What takes a connection may run in a thread of its own.
    """

    def __init__(
        self, database: Database, node: Node, facts: Callable[[], Mapping[str, PeerFacts]]
    ) -> None:
        self._database = database
        self._node = node
        self._facts = facts

    def peers(self, db: Connection) -> list[dict[str, Any]]:
        """Every peer as schemas.sync.PeerSummary."""
        ahead, facts = self.clocks_ahead(), self._facts()
        contradictions = equivocations.counts(db)
        # Peers that are up to date have the same cursor: it is counted once.
        waiting = cache(partial(self._waiting, db))
        since = cache(partial(self._since, db))
        return [
            registration.describe(peer)
            | present(
                {
                    "sync": self._state(db, peer, facts.get(peer.agent_id), waiting, since),
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
            each.health == "down" or self._lag(since, each) >= seconds
            for each in self._facts().values()
        )

    def equality(self, db: Connection) -> Equality:
        """Whether the nodes of the mesh hold the same."""
        listed, facts = peers.every(db), self._facts()
        waiting = cache(partial(self._waiting, db))
        nodes = [peer.agent_id for peer in listed if peer.secret is not None]
        return equality(
            [_compared(agent_id, facts.get(agent_id), waiting) for agent_id in nodes],
            foreign=len(listed) - len(nodes),
            deferred=deferred.count(db),
        )

    def standings(self) -> dict[str, tuple[str, bool | None]]:
        """Whether each peer answers, and whether it held the same when it was last compared."""
        return {agent_id: (each.health, each.is_equal) for agent_id, each in self._facts().items()}

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

    def of_peers(self, value: Callable[[PeerFacts], float]) -> dict[str, float]:
        """A value of each peer."""
        return {agent_id: value(each) for agent_id, each in self._facts().items()}

    def of_nodes(self, value: Callable[[PeerFacts], float]) -> dict[str, float]:
        """A value of each mesh peer."""
        return {agent_id: value(each) for agent_id, each in self._facts().items() if each.is_mesh}

    def backlogs(self, db: Connection) -> dict[str, float]:
        """How many entities wait for each peer."""
        return self.of_peers(partial(_backlog, cache(partial(self._waiting, db))))

    def lags(self, db: Connection) -> dict[str, float]:
        """For how many seconds the oldest entity has waited for each peer."""
        return self.of_peers(partial(self._lag, cache(partial(self._since, db))))

    def clock_correction(self) -> float:
        """Seconds that are added to the machine's clock."""
        return self._database.clock.verdict.correction / 1e6

    def clocks_ahead(self) -> dict[str, int]:
        """How many seconds each peer's clock is ahead of the time, where it was measured."""
        return {
            agent_id: round(each.ahead / 1e6)
            for agent_id, each in self._facts().items()
            if each.ahead is not None
        }

    def _state(
        self,
        db: Connection,
        peer: Peer,
        facts: PeerFacts | None,
        waiting: Callable[[int], int],
        since: Callable[[int], int | None],
    ) -> dict[str, Any] | None:
        """The PeerState of a peer; None while nothing is exchanged with it."""
        if facts is None:
            return None
        contact, last = facts.last_contact, facts.compared
        undelivered = facts.undelivered_entities
        state = {
            "health": facts.health,
            "backlog": _backlog(waiting, facts),
            "undelivered": facts.undelivered,
            "undeliveredEntities": undelivered or None,
            "mail": mail_outbox.count_entries(db, node=peer.agent_id),
            "lagSeconds": round(self._lag(since, facts), 3),
            "lastContact": iso(int(contact * 1e6)) if contact is not None else None,
            "lastError": facts.last_error or (undelivered[0]["reason"] if undelivered else None),
            "retries": facts.retries,
            "digestRounds": facts.rounds,
            "comparedAt": iso(last.at) if last else None,
            "isEqual": facts.is_equal,
            "differing": (dict(last.differing) or None) if last else None,
        }
        return present(state)

    def _waiting(self, db: Connection, cursor: int) -> int:
        return peers.backlog(db, cursor, self._node.agent_id)

    def _since(self, db: Connection, cursor: int) -> int | None:
        return peers.waiting_since(db, cursor, self._node.agent_id)

    def _lag(self, since: Callable[[int], int | None], facts: PeerFacts) -> float:
        oldest = since(facts.confirmed)
        return 0.0 if oldest is None else max(0.0, (self._database.now() - oldest) / 1e6)


def verdict_of(judged: Equality) -> dict[str, Any]:
    """An Equality as schemas.mesh.MeshVerdict."""
    at = judged.compared_at
    return present(judged._asdict() | {"compared_at": None, "comparedAt": at and iso(at)})


def _compared(
    agent_id: str, facts: PeerFacts | None, waiting: Callable[[int], int]
) -> NodeCompared:
    if facts is None or not facts.is_mesh:
        return NodeCompared(agent_id, is_up=False)
    is_up, last, backlog = not facts.failures, facts.compared, _backlog(waiting, facts)
    if last is None:
        return NodeCompared(agent_id, is_up, backlog=backlog)
    return NodeCompared(agent_id, is_up, last.at, last.is_equal, last.differing, backlog=backlog)


def _backlog(waiting: Callable[[int], int], facts: PeerFacts) -> int:
    return waiting(facts.cursor) + facts.undelivered
