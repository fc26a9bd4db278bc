"""What is known of the exchange with each peer, apart from the tasks that know it: replicas that
exchange nothing themselves show what the one tells that does."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from peers.sender import Sender
from peers.timekeeper import Timekeeper
from server.mesh.anti_entropy import Comparison, ComparisonResult
from server.mesh.peer_tasks import PeerTasks
from server.mesh.send_progress import undelivered_of


class PeerFacts(NamedTuple):
    """How the exchange with one peer goes. `rounds`, `fetched`, `compared` and `ahead` only of a
    mesh peer. `last_contact` is in seconds, `ahead` in microseconds."""

    failures: int
    cursor: int
    confirmed: int
    undelivered: int
    undelivered_entities: list[dict[str, Any]]
    """The first of them, as schemas.mesh.Undelivered."""
    last_contact: float | None
    last_error: str | None
    retries: int
    delivered: int
    is_mesh: bool
    rounds: int = 0
    fetched: int = 0
    compared: ComparisonResult | None = None
    ahead: int | None = None
    """How far its clock is ahead of the time, where that was measured."""

    @property
    def health(self) -> str:
        return "down" if self.failures else "up" if self.last_contact else "unknown"

    @property
    def is_equal(self) -> bool | None:
        """Whether it held the same when it was last compared."""
        return None if self.compared is None else self.compared.is_equal


def facts_of(tasks: PeerTasks, clock: Timekeeper) -> PeerFacts:
    """The facts of a peer that tasks run for."""
    facts = _of_sender(tasks.sender)
    comparison = tasks.comparison
    return facts if comparison is None else _with_comparison(facts, comparison, tasks, clock)


def _of_sender(sender: Sender) -> PeerFacts:
    return PeerFacts(
        sender.failures,
        sender.cursor,
        sender.confirmed,
        len(sender.undelivered),
        undelivered_of(sender),
        sender.last_contact,
        sender.last_error,
        sender.retries,
        sender.delivered,
        is_mesh=False,
    )


def _with_comparison(
    facts: PeerFacts, comparison: Comparison, tasks: PeerTasks, clock: Timekeeper
) -> PeerFacts:
    return facts._replace(
        is_mesh=True,
        rounds=comparison.rounds,
        fetched=comparison.fetched,
        compared=comparison.last,
        ahead=clock.ahead(tasks.peer.agent_id),
    )


def as_json(facts: Mapping[str, PeerFacts]) -> dict[str, Any]:
    """The facts of all peers as JSON."""
    return {
        agent_id: each._asdict() | {"compared": each.compared and each.compared._asdict()}
        for agent_id, each in facts.items()
    }


def from_json(document: Mapping[str, Any]) -> dict[str, PeerFacts]:
    """The facts that `as_json` made JSON of."""
    return {
        agent_id: PeerFacts(
            **each | {"compared": each["compared"] and ComparisonResult(**each["compared"])}
        )
        for agent_id, each in document.items()
    }
