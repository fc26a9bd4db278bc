"""What docs/replicas.md tells an operator is so: settings, commands, reasons, metrics, figures."""

import re
from functools import cache
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from typer.main import get_command

from cli.main import app
from peers.clock import OFF
from server.cluster.background_duty import LOOK_SECONDS
from server.cluster.trouble import VACANT_SECONDS, replica_trouble
from server.domain import duty
from server.domain.location import check_database_url
from server.http import rate_limit
from server.setting_sources import OTHER_VARIABLES
from server.settings import Settings
from server.store import idempotency
from server.store.postgresql import connection, fitness, migrate, news, storage
from server.store.postgresql.errors import WORDS
from tests.architecture.source import OURS, ROOT
from tests.support.console import blocks

PAGE = (ROOT / "docs/replicas.md").read_text()
TEXT = " ".join(PAGE.split())
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", PAGE, flags=re.M | re.S))
SHELL = "\n".join(content for language, _, content in blocks(PAGE) if language == "sh")
SECOND = 1_000_000
USED = (
    *("pg_advisory_xact_lock", "idle_in_transaction_session_timeout", "clock_timestamp()"),
    *("pg_notify", "LISTEN", "pg_control_system", "pg_walfile_name", "FOR SHARE", "FOR UPDATE"),
    *("REPEATABLE READ", "READ COMMITTED", "UNLOGGED", "plpgsql", "TSVECTOR", "ON CONFLICT"),
)
OURS_BEGIN = ("cacp_", "storage_", "background_", "machine_", "commit_un")
"""How names of reasons, metrics and log lines of ours begin."""


@cache
def code() -> str:
    files = (file for folder in OURS for file in (ROOT / folder).rglob("*.py"))
    return "\n".join(file.read_text() for file in files)


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def first_cells(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", section(title), re.MULTILINE)


def test_every_setting_is_one() -> None:
    known = {f"CACP_{name.upper()}" for name in Settings.model_fields} | {*OTHER_VARIABLES}
    assert {*re.findall(r"CACP_[A-Z_]+", PAGE)} <= known


def commands() -> list[list[str]]:
    """The words of each command that the page names."""
    named = [found for found in CODE if found.startswith("cacp ")]
    lines = [re.sub(r"^(\w+=\S+ )+", "", line.strip()) for line in SHELL.splitlines()]
    named += [line for line in lines if line.startswith("cacp ")]
    return [line.split()[1:] for line in named]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_is_one_with_its_options(words: list[str]) -> None:
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        assert rest[0] in command.commands, words
        command = command.commands[rest.pop(0)]
    options = {name for param in command.params for name in param.opts}
    assert {word for word in rest if word.startswith("--")} <= options


def test_every_reason_of_the_storage_is_in_the_table_and_no_other() -> None:
    assert sorted(first_cells("Failures")) == sorted(WORDS)


def test_every_reason_of_a_replica_among_others_is_in_the_table() -> None:
    idle = replica_trouble(vacant=VACANT_SECONDS, machine_ahead=0)
    clock = replica_trouble(vacant=0, machine_ahead=2 * OFF)
    assert idle is not None
    assert clock is not None
    reasons = [cell for cell in first_cells("Monitoring") if not cell.startswith("cacp_")]
    assert reasons == [idle.reason, clock.reason]


def test_every_metric_and_log_line_and_reason_is_in_the_code() -> None:
    names = {re.sub(r"\{.*", "", name) for name in CODE if re.fullmatch(r"[a-z]+_[a-z_]+.*", name)}
    ours = {name for name in names if name.startswith(OURS_BEGIN)}
    assert len(ours) > 20
    assert {name for name in ours if f'"{name}"' not in code()} == set()
    for loop in ("background_duty", "heartbeat", "database_news", "database_poll"):
        assert f"`{loop}`" in PAGE
        assert f'"{loop}"' in code()


def test_every_url_is_one_that_libpq_reads() -> None:
    urls = set(re.findall(r"postgresql://[^\s'`]+", SHELL))
    assert len(urls) > 1
    for url in urls:
        check_database_url(url)
        assert conninfo_to_dict(url)["dbname"] == "cacp"


@pytest.mark.parametrize(
    ("said", "value", "unit"),
    [
        ("PostgreSQL 14 or newer", fitness.OLDEST / 10_000, 14),
        ("a lease of ten seconds", duty.LEASE / SECOND, 10),
        ("renews it every three seconds", duty.RENEW / SECOND, 3),
        ("the next one begins within a second", LOOK_SECONDS, 0.5),
        ("looks at the database every two seconds", news.POLL_SECONDS, 2),
        ("N twentieths of the limit more", rate_limit.PARTS, 20),
        ("has news within 0.2 seconds", news.POLL_UNHEARD_SECONDS, 0.2),
        ("held a lock for more than seven seconds", connection.LOCK_MS / 1000, 7),
        ("the server ends its transaction after five seconds", connection.IDLE_MS / 1000, 5),
        ("a statement took more than eight seconds", connection.STATEMENT_MS / 1000, 8),
        ("the server was silent for ten", connection.ANSWER_SECONDS, 10),
        ("could not find out within ten seconds", storage.LOOKUP_SECONDS, 10),
        ("the start waits ten seconds for one", migrate.VOUCH_SECONDS, 10),
        ("no replica has had the duty for 20 seconds", VACANT_SECONDS, 20),
        ("is more than 30 seconds from the database server's", OFF / SECOND, 30),
        ("Answers are kept for 24 hours", idempotency.KEPT / SECOND / 3600, 24),
        ("up to seven connections: one that writes, four that read", storage.READERS, 4),
    ],
)
def test_every_figure_is_that_of_the_code(said: str, value: float, unit: float) -> None:
    assert said in TEXT
    assert value == unit


@pytest.mark.parametrize("used", USED)
def test_what_the_database_must_have_is_used(used: str) -> None:
    folder = ROOT / "server/store/postgresql"
    files = [file for kind in ("*.py", "*.sql") for file in folder.rglob(kind)]
    assert any(used in file.read_text() for file in files)
    assert used.lower() in section("What the database must be").lower()
