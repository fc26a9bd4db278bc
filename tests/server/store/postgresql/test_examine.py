"""What a server says of itself."""

from contextlib import closing

import psycopg
import pytest

from server.domain.location import DatabaseUrl
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.examine import SETTINGS, examine
from tests.support.postgresql import execute, own_server
from tests.support.waiting import eventually


def test_a_server_says_what_matters(url: DatabaseUrl) -> None:
    with closing(PgConnection(url)):
        facts = examine(url)
    assert int(facts.version.split(".")[0]) >= 14
    assert facts.takes_writes
    assert facts.settings.keys() == set(SETTINGS)
    assert facts.connections > facts.connections_of_nodes == 1
    assert facts.database_bytes > 1_000_000
    assert abs(facts.ahead) <= facts.uncertainty + 1_000_000
    assert not facts.pooled
    assert facts.standbys == []


def test_durations_are_milliseconds(url: DatabaseUrl) -> None:
    name = url.rpartition("/")[2]
    execute(url, f"ALTER DATABASE {name} SET idle_session_timeout = '7s'")
    execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    facts = examine(url)
    assert facts.settings["idle_session_timeout"] == "7000"
    assert not facts.takes_writes


def test_a_server_and_its_standby() -> None:
    with own_server() as server, server.standby(server.folder / "second", "second") as standby:
        eventually(lambda: [each.name for each in examine(server.url()).standbys] == ["second"])
        eventually(lambda: examine(server.url()).standbys[0].lag is not None)
        assert not examine(standby.url()).takes_writes


def test_a_server_that_is_away_is_the_drivers_error() -> None:
    with pytest.raises(psycopg.OperationalError):
        examine("postgresql://127.0.0.1:1/x")
