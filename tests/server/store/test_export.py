"""The export: everything but secrets, as lines of JSON, of one moment."""

import sqlite3
from contextlib import closing
from typing import Any

import orjson
import psycopg
import pytest

from server.domain.location import Location
from server.store import files, peers
from server.store.connection import Connection
from server.store.export import ENTITIES, lines, view
from server.store.files import File, FileContent, FileRequestRow
from server.store.opening import connect
from server.store.projects import ProjectHeader
from tests.server.store.conftest import PROJECT
from tests.support.fresh_store import tables_of

SECRET_TABLES = {"keys", "tokens", "meta", "idempotency", "invites", "wanted_peers"}
SECRET_TABLES |= {"peer_api_keys", "key_projects", "page_sessions", "page_links"}
OF_THIS_NODE = {
    "directories",
    "listed_agents",
    "mail_routes",
    "mail_sources",
    "handoffs_elsewhere",
    "mail_out",
    "node_keys",
    "bans",
    "homes",
    "set_aside",
    "undelivered",
    "send_rates",
    "breakers",
    "workq_intents",
    "acp_meta",
    "webhooks",
    "session_shown",
    "thread_runs",
}
"""Whom this node trusts and holds off, and what it has not taken in or done yet."""

OF_REPLICAS = {
    "cluster",
    "commits",
    "duties",
    "replicas",
    "request_rates",
    "search_index",
    "shared_values",
}
"""On PostgreSQL: what replicas share, and the index that SQLite makes when it is needed."""

OTHERWISE = {"aliases": "repo_aliases", "deliveries": "delivery_log"}
"""The tables of entities that are not called as their tables are."""


def exported(db: Connection, entity: str) -> list[dict[str, Any]]:
    """The rows of an entity, on a connection of its own or within a view."""
    if db.in_transaction:
        return [orjson.loads(line) for line in lines(db, entity)]
    db.execute("BEGIN")
    try:
        return [orjson.loads(line) for line in lines(db, entity)]
    finally:
        db.execute("ROLLBACK")


def test_times_are_readable_and_stamps_exact(db: Connection, project: ProjectHeader) -> None:
    assert exported(db, "projects") == [
        {
            "project_id": PROJECT,
            "name": "User Auth",
            "objective": "Login",
            "status": "planning",
            "agreement_policy": "any",
            "verification_policy": "word",
            "created_at": "1970-01-01T00:00:00.001000+00:00",
            "stamp": 1_000,
        }
    ]
    [repo] = exported(db, "repos")
    assert (repo["relevant_paths"], repo["claimed_at"]) == (["src/"], None)


def test_a_file_goes_out_with_its_content(db: Connection, project: ProjectHeader) -> None:
    file = File("f1", "a", "text/plain", 3, "ab", None, '["c1"]', "backend", "agent", "r1", 1)
    files.put(db, PROJECT, file)
    files.put_request(db, PROJECT, FileRequestRow("r1", "frontend", "agent", "Logo", None, 1))
    [one] = exported(db, "files")
    assert one["content"] is None, "it is on another node"
    files.put_content(db, PROJECT, file, FileContent(b"\x00\xff!", None))
    [one] = exported(db, "files")
    assert (one["content"], one["related_contracts"]) == ("AP8h", ["c1"])
    [asked] = exported(db, "file_requests")
    assert asked["fulfilled_by"] == "f1"


def test_it_is_of_one_moment_and_changes_nothing(
    location: Location, db: Connection, project: ProjectHeader
) -> None:
    with view(location) as then:
        assert exported(then, "peers") == []
        with closing(connect(location)) as other:
            peers.put(other, "agent", "http://x.example", None, "verified", 1)
        assert exported(then, "peers") == []
        with pytest.raises((sqlite3.Error, psycopg.Error), match=r"readonly|read-only"):
            assert then.execute("DELETE FROM repos").rowcount
    assert len(exported(db, "peers")) == 1


def test_every_table_is_exported_or_left_out_on_purpose(db: Connection) -> None:
    tables = tables_of(db) - OF_REPLICAS
    shown = {OTHERWISE.get(entity, entity) for entity in ENTITIES}
    derived = {"packet_contracts", "exchanged", "digests", "digest_sums", "mailboxes", "threads"}
    derived |= {"processed_messages", "client_ids", "handoff_control", "migrations"}
    derived |= {"thread_parties", "attention_openings", "attention_counts", "unanswered_queries"}
    derived |= {"claim_releases"}
    derived |= {"archived_dead_letters"}
    derived |= {"file_contents"}
    derived |= {"alarms", "equivocations", "search_docs", "search_queue"}
    assert tables - shown == SECRET_TABLES | OF_THIS_NODE | derived
    assert shown <= tables
