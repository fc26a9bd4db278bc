"""What a caller is told of each error of the server, of libpq and of this driver."""

import psycopg
import pytest
from structlog.testing import capture_logs

from server.domain.location import DatabaseUrl
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.errors import (
    WORDS,
    NodeMoved,
    NotReplicated,
    ServerSilent,
    unavailable,
)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("53100", "storage_full"),
        ("53200", "storage_crowded"),
        ("53300", "storage_crowded"),
        ("25006", "storage_read_only"),
        ("55P03", "storage_locked"),
        ("40P01", "storage_locked"),
        ("40001", "storage_locked"),
        ("57014", "storage_slow"),
        ("25P03", "storage_slow"),
        ("57P01", "storage_away"),
        ("57P03", "storage_away"),
        ("08006", "storage_away"),
        ("XX001", "storage_corrupt"),
        ("XX002", "storage_corrupt"),
        ("42P01", "storage_failed"),
        ("23505", "storage_failed"),
        ("XX000", "storage_failed"),
    ],
)
def test_each_state_of_the_server_has_a_reason(state: str, reason: str) -> None:
    refusal = unavailable(psycopg.errors.lookup(state)())
    assert refusal.data["reason"] == reason
    assert refusal.message


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FATAL:  sorry, too many clients already", "storage_crowded"),
        ('FATAL:  too many connections for role "app"', "storage_crowded"),
        ("FATAL:  remaining connection slots are reserved for roles with …", "storage_crowded"),
        ("FATAL:  no more connections allowed (max_client_conn)", "storage_crowded"),
        ("FATAL:  the database system is starting up", "storage_away"),
        ("server closed the connection unexpectedly", "storage_away"),
    ],
)
def test_a_refused_connection_has_a_reason_by_what_was_said(said: str, reason: str) -> None:
    assert unavailable(psycopg.OperationalError(said)).data["reason"] == reason


def test_errors_of_the_driver_have_a_reason() -> None:
    assert unavailable(ServerSilent("…")).data["reason"] == "storage_slow"
    assert unavailable(NodeMoved("…")).data["reason"] == "storage_moved"
    assert unavailable(NotReplicated("…")).data["reason"] == "storage_away"
    assert unavailable(psycopg.InternalError("…")).data["reason"] == "storage_failed"


def test_a_server_that_takes_no_writes_is_told_from_one_that_is_away(url: DatabaseUrl) -> None:
    """libpq asks each of several servers whether it takes writes."""
    wants = "target_session_attrs=read-write"
    read_only = f"{url}?{wants}&options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(psycopg.OperationalError) as error:
        PgConnection(read_only)
    assert unavailable(error.value).data["reason"] == "storage_read_only"


def test_a_port_where_nobody_listens_is_a_server_that_is_away() -> None:
    with pytest.raises(psycopg.OperationalError) as error:
        PgConnection("postgresql://127.0.0.1:9/none")
    assert unavailable(error.value).data["reason"] == "storage_away"


def test_a_caller_is_told_no_words_of_the_server() -> None:
    for state in ("42P01", "53100", "57P01"):
        refusal = unavailable(psycopg.errors.lookup(state)("secret of the server"))
        assert refusal.message == WORDS[refusal.data["reason"]]


def test_a_statement_that_was_refused_is_logged_with_its_cause() -> None:
    """Its first line only: the second shows values."""
    error = psycopg.errors.UniqueViolation("duplicate key\nDETAIL:  Key (a)=(secret) exists.")
    with capture_logs() as logs:
        unavailable(error)
    [line] = logs
    assert (line["event"], line["state"]) == ("database_refused", "23505")
    assert line["error"] == "duplicate key"


@pytest.mark.parametrize("error", [psycopg.InternalError(), RuntimeError(), AssertionError()])
def test_an_error_without_words_is_a_refusal_as_well(error: Exception) -> None:
    """Whatever fails in a group: its callers are answered."""
    with capture_logs() as logs:
        assert unavailable(error).data["reason"] == "storage_failed"
    [line] = logs
    assert line["error"] == type(error).__name__


def test_a_server_that_is_away_is_not_logged_by_each_statement() -> None:
    with capture_logs() as logs:
        unavailable(psycopg.OperationalError("connection refused"))
    assert logs == []
