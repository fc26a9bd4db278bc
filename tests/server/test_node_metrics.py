"""Every part of a node is counted at /metrics, under the names that dashboards know."""

from tests.support.located import ON_POSTGRESQL
from tests.support.node import Node

NAMES = {
    "cacp_adp_registered",
    "cacp_answers_bytes",
    "cacp_answers_not_taken_total",
    "cacp_answers_waiting",
    "cacp_audit_rounds_total",
    "cacp_background_duty",
    "cacp_background_duty_gained_total",
    "cacp_clock_correction_seconds",
    "cacp_clock_unconfirmed",
    "cacp_commits_total",
    "cacp_connections",
    "cacp_connections_refused_total",
    "cacp_deferred_dropped_total",
    "cacp_deferred_messages",
    "cacp_event_streams",
    "cacp_open_pages",
    "cacp_page_seconds",
    "cacp_file_copies_bytes",
    "cacp_files_fetched_total",
    "cacp_files_not_fetched_total",
    "cacp_replicas",
    "cacp_stamps_ahead_seconds",
    "cacp_waiting_writes",
    "cacp_wal_bytes",
    "cacp_write_lock_seconds_total",
    "cacp_workq_manual",
    "cacp_writes_total",
}
LABELLED = {
    "cacp_alarms",
    "cacp_answers_refused_total",
    "cacp_attention_open",
    "cacp_calls_total",
    "cacp_equivocations",
    "cacp_loop_failures_total",
    "cacp_mail_dead_letters",
    "cacp_mail_pushes_failed_total",
    "cacp_mail_pushes_taken_total",
    "cacp_peer_backlog",
    "cacp_peer_clock_ahead_seconds",
    "cacp_peer_conflicts_total",
    "cacp_peer_digest_rounds_total",
    "cacp_peer_fetched_total",
    "cacp_peer_lag_seconds",
    "cacp_peer_overruled_total",
    "cacp_peer_deleted_refused_total",
    "cacp_peer_retries_total",
    "cacp_peer_sent_total",
    "cacp_peer_undelivered",
    "cacp_peer_up",
}


OF_FILES = {"cacp_wal_bytes"}
"""What only a node on a file has."""
if ON_POSTGRESQL:
    NAMES -= OF_FILES


def test_a_node_shows_every_metric(node: Node) -> None:
    lines = node.get("/metrics").text.splitlines()
    values = {line.split()[0] for line in lines if line.startswith("cacp_") and "{" not in line}
    assert values == NAMES
    kinds = {line.split()[2] for line in lines if line.startswith("# TYPE cacp_")}
    assert kinds == NAMES | LABELLED
