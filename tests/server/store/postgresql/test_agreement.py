"""Replicas that run are one node: another one on their database is refused."""

from contextlib import closing

import pytest

from server.store.postgresql import replicas
from server.store.postgresql.agreement import agree
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare
from server.store.postgresql.replicas import Announced

OWN = {"CACP_AGENT_ID": "aid://example.com/a@1.0.0", "CACP_PUBLIC_URL": "https://a.example"}


def starts(url: str, **changed: str) -> None:
    with closing(PgConnection(url)) as db:
        db.execute("BEGIN IMMEDIATE")
        agree(db, OWN | changed)
        db.execute("COMMIT")


def test_a_replica_of_another_node_is_refused_while_one_runs(url: str) -> None:
    prepare(url)
    starts(url)
    starts(url, CACP_PUBLIC_URL="https://b.example")
    with closing(PgConnection(url)) as db:
        replicas.beat(db, Announced("r", "127.0.0.1:1", "2.0", "baseline", "healthy"))
        with pytest.raises(ValueError, match=r"their CACP_PUBLIC_URL is https://b.example, and"):
            starts(url)
        starts(url, CACP_PUBLIC_URL="https://b.example")
        with pytest.raises(ValueError, match=r"their CACP_AGENT_ID is aid://example.com/a"):
            starts(url, CACP_PUBLIC_URL="https://b.example", CACP_AGENT_ID="aid://b@1.0.0")
        db.execute("UPDATE replicas SET seen_at = seen_at - interval '11 seconds'")
    starts(url)


def test_a_release_that_names_more_is_no_other_node(url: str) -> None:
    prepare(url)
    starts(url)
    with closing(PgConnection(url)) as db:
        replicas.beat(db, Announced("r", "127.0.0.1:1", "2.0", "baseline", "healthy"))
    starts(url, CACP_REPO="shop")
