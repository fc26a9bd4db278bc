"""Registers what the parts of a node count; `server.http.metrics` counts the calls itself."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from server.cluster.member import ClusterMember
from server.discovery.service import Discovery
from server.http.connections import Connections
from server.http.metrics import Metrics
from server.mesh.peer_facts import PeerFacts
from server.mesh.supervisor import Supervisor
from server.node import Node
from server.page.live import LivePages
from server.rpc.answer_budget import AnswerBudget
from server.store import (
    alarms,
    attention,
    changes,
    deferred,
    equivocations,
    files,
    handoffs,
    mailboxes,
)
from server.store.connection import Connection
from server.store.database import Database
from server.store.sqlite.storage import SqliteStorage
from server.util.loops import Loops
from server.workers.content_audit import ContentAudit
from server.workers.push_worker import PushWorker


def count_storage(metrics: Metrics, database: Database) -> None:
    gauge = metrics.gauge
    gauge("cacp_commits_total", "Group commits", lambda: database.commits)
    gauge("cacp_writes_total", "Writes that are on disk", lambda: database.writes)
    gauge("cacp_waiting_writes", "Writes that wait", lambda: database.waiting)
    gauge(
        "cacp_write_lock_seconds_total",
        "Seconds in which this process had the lock of writers",
        lambda: database.lock_seconds,
    )
    storage = database.storage
    if isinstance(storage, SqliteStorage):
        gauge("cacp_wal_bytes", "Size of the write-ahead log", lambda: storage.log_bytes)
    metrics.stored_family(
        "cacp_equivocations",
        "Contradictory statements that a node signed, of which evidence is kept",
        "node",
        equivocations.counts,
    )
    metrics.stored_family(
        "cacp_alarms",
        "Alarms about content, which /health shows, by reason",
        "reason",
        alarms.counts,
    )


def count_loops(metrics: Metrics, loops: Loops, audit: ContentAudit) -> None:
    metrics.family(
        "cacp_loop_failures_total",
        "Failed turns of the node's own loops",
        "loop",
        partial(dict, loops.failures),
    )
    metrics.gauge(
        "cacp_audit_rounds_total", "How often all content was checked", lambda: audit.rounds
    )


def count_replicas(metrics: Metrics, cluster: ClusterMember) -> None:
    """This process among the replicas of the node."""
    metrics.gauge(
        "cacp_background_duty",
        "1 while this replica does what only one may do",
        lambda: int(cluster.does_background_work()),
    )
    metrics.gauge(
        "cacp_background_duty_gained_total",
        "How often this replica has begun to",
        lambda: cluster.duty.gained,
    )
    metrics.gauge(
        "cacp_replicas", "Replicas that run", lambda: len(cluster.heartbeat.running()) or 1
    )


def count_pages(metrics: Metrics, live: LivePages) -> None:
    """The pages of people."""
    metrics.gauge("cacp_open_pages", "Pages that are open and live", lambda: live.open)
    metrics.gauge(
        "cacp_page_seconds",
        "Seconds of CPU that a page takes, as the last ones did",
        lambda: live.cost,
    )


def count_callers(
    metrics: Metrics, connections: Connections, budget: AnswerBudget, streams: Counter[str]
) -> None:
    """Connections, event streams and large answers."""
    gauge = metrics.gauge
    gauge("cacp_connections", "Open connections of callers", lambda: connections.open)
    gauge(
        "cacp_connections_refused_total",
        "Connections refused over a limit",
        lambda: connections.refused,
    )
    gauge("cacp_event_streams", "Open event streams", lambda: streams.total())
    gauge(
        "cacp_answers_bytes",
        "Bytes of large answers that are being made or sent",
        lambda: budget.taken,
    )
    gauge("cacp_answers_waiting", "Calls that wait for room", lambda: budget.waiting)
    gauge(
        "cacp_answers_not_taken_total",
        "Connections ended because their callers did not read their answers",
        lambda: connections.ended,
    )
    metrics.family(
        "cacp_answers_refused_total",
        "Calls refused because their answers were too large or had no room",
        "reason",
        partial(dict, budget.refused),
    )


def count_attention(metrics: Metrics, database: Database) -> None:
    metrics.stored_family(
        "cacp_attention_open",
        "What waits for agents and humans, by kind",
        "kind",
        attention.open_counts,
    )


def count_mail(metrics: Metrics, push_worker: PushWorker, database: Database) -> None:
    """Pushes, dead letters and handoffs."""
    metrics.stored_family(
        "cacp_mail_dead_letters",
        "Recipients that a message did not reach, by its status with them",
        "status",
        mailboxes.count_dead,
    )
    for name, help, counted in (
        ("taken", "Pushes of messages that were accepted", push_worker.taken),
        ("failed", "Pushes of messages that failed", push_worker.failed),
    ):
        metrics.family(f"cacp_mail_pushes_{name}_total", help, "channel", partial(dict, counted))
    metrics.stored_gauge(
        "cacp_workq_manual",
        "Handoffs whose ownership at workq must be moved by hand",
        handoffs.manual_count,
    )


def count_peers(metrics: Metrics, mesh: Supervisor, database: Database, node: Node) -> None:
    """What the node knows of each peer."""
    status = mesh.status

    def of_peers(value: Callable[[PeerFacts], float]) -> Callable[[], dict[str, float]]:
        return lambda: status.of_peers(value)

    def of_nodes(value: Callable[[PeerFacts], float]) -> Callable[[], dict[str, float]]:
        return lambda: status.of_nodes(value)

    def counted(by_peer: Mapping[str, int]) -> dict[str, float]:
        return {agent_id: by_peer.get(agent_id, 0) for agent_id in status.standings()}

    def conflicts(db: Connection) -> dict[str, float]:
        return counted(changes.conflicts_by_origin(db))

    for name, help, values in (
        ("up", "1 when the peer answers", of_peers(lambda each: each.failures == 0)),
        (
            "undelivered",
            "Of these, entities that it refused",
            of_peers(lambda each: each.undelivered),
        ),
        ("sent_total", "Entities that it confirmed", of_peers(lambda each: each.delivered)),
        ("retries_total", "Deliveries that failed", of_peers(lambda each: each.retries)),
        ("digest_rounds_total", "Comparisons", of_nodes(lambda each: each.rounds)),
        (
            "overruled_total",
            "Statements of it that its signer had no right to make",
            partial(counted, node.overruled),
        ),
        (
            "deleted_refused_total",
            "What it sent of projects deleted here",
            partial(counted, node.deleted_refused),
        ),
        ("fetched_total", "Entities fetched by comparing", of_nodes(lambda each: each.fetched)),
        ("clock_ahead_seconds", "How far its clock is ahead of the time", status.clocks_ahead),
    ):
        metrics.family(f"cacp_peer_{name}", help, "peer", values)
    for name, help, stored in (
        ("backlog", "Entities that wait for the peer", status.backlogs),
        ("lag_seconds", "How long the oldest of them has waited", status.lags),
        ("conflicts_total", "Conflicts in what it sent", conflicts),
    ):
        metrics.stored_family(f"cacp_peer_{name}", help, "peer", stored)


def count_mesh(
    metrics: Metrics, mesh: Supervisor, discovery: Discovery, database: Database, node: Node
) -> None:
    """Deferred messages, copies of files, clocks, and the ADP exchange."""
    gauge, fetcher = metrics.gauge, mesh.files
    metrics.stored_gauge(
        "cacp_deferred_messages",
        "Messages of peers that wait until they are due, or for what they follow on",
        deferred.count,
    )
    gauge(
        "cacp_deferred_dropped_total",
        "Deferred messages of peers that were refused, expired, or were too many",
        lambda: node.deferred_dropped.total(),
    )
    gauge("cacp_files_fetched_total", "Files fetched from other nodes", lambda: fetcher.fetched)
    gauge("cacp_files_not_fetched_total", "Files that no node gave", lambda: fetcher.failed)
    metrics.stored_gauge(
        "cacp_file_copies_bytes",
        "Bytes of copies of other nodes' files",
        files.copied_bytes,
    )
    gauge(
        "cacp_clock_correction_seconds",
        "Added to this machine's clock",
        mesh.status.clock_correction,
    )
    gauge(
        "cacp_clock_unconfirmed",
        "1 while nothing expires by this machine's clock, because nothing confirms it",
        lambda: int(database.clock.doubt is not None),
    )
    gauge(
        "cacp_stamps_ahead_seconds",
        "How far the newest stamp in the store is ahead of the time",
        lambda: max(0, database.stamps.newest - database.now()) / 1e6,
    )
    gauge(
        "cacp_adp_registered", "1 while the ADP exchange lists this node", discovery.is_registered
    )
