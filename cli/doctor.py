"""`cacp doctor`: checks everything that a node needs, and names a remedy for each problem.

The checks are in `doctor_machine`, `doctor_database`, `doctor_postgresql`, `doctor_content`,
`doctor_operator`, `doctor_peers`, `doctor_node` and `doctor_port`, and in `server.store.checks`,
which the page shows too. Each imports what it needs when it runs.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cli.options import ConfigOption, DbOption, JsonOption
from cli.page_link import WebOption, print_link
from cli.terminal import REFUSED, USAGE, fail, print_json

if TYPE_CHECKING:
    from server.domain.doctor_check import DoctorCheck
    from server.domain.location import DatabaseUrl
    from server.settings import Settings
    from server.store.connection import Connection


def doctor(
    db: DbOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Check everything that a node needs, and show how to fix each problem.

    Checks settings, clock, disk, database and peers. When a node runs on this database, it checks
    that node, wherever it listens; else the port on which one would listen. It also checks that
    the commands of this shell call that node, and that the node knows CACP_KEY. On PostgreSQL it
    checks the server, its settings and standbys, and which replicas run. Reads the same CACP_*
    variables as `cacp serve`, and changes nothing.

    Exit status: 0 nothing is broken (there may be warnings), 1 something is broken.

    \b
    Examples:
      cacp doctor
      cacp doctor --db team.db --json
    """
    if web:
        print_link(_url(db), "health")
        return
    checks: list[DoctorCheck] = []
    for check in examine(db, config):
        checks.append(check)
        if not as_json:
            _print(check)
    broken = sum(check.state == "broken" for check in checks)
    if as_json:
        print_json({"healthy": not broken, "checks": [check.as_json() for check in checks]})
    if broken:
        raise typer.Exit(REFUSED)


def _url(db: str | None) -> str:
    """The URL of the node that is examined, as `cli.node_url` finds it."""
    from cli.node_url import node_url

    is_file = db is not None and "://" not in db
    named = {"CACP_DB": str(db), "CACP_URL": "", "CACP_PORT": ""} if is_file else {}
    try:
        return node_url({**os.environ, **named}).url
    except ValueError as error:
        fail(USAGE, str(error))


def examine(db: str | Path | None, config: Path | None) -> Iterator["DoctorCheck"]:
    """Every check, in the order in which a node depends on what is checked."""
    from cli import doctor_machine, doctor_node
    from cli.doctor_port import port_checks
    from server.domain.doctor_check import DoctorCheck
    from server.settings import load

    try:
        settings = load(config, **_named(db))
    except ValueError as error:
        yield DoctorCheck(
            "settings", "broken", str(error), "correct it as described in docs/settings.md"
        )
        return
    place = f"{settings.host}:{settings.port}"
    yield DoctorCheck("settings", "ok", f"`cacp serve` would run {settings.agent} on {place}")
    yield from doctor_machine.variable_checks(os.environ)
    yield doctor_machine.clock_check(time.time())
    if isinstance(settings.location, Path):
        yield doctor_machine.disk_check(settings.db)
        yield from _file_checks(settings)
    else:
        yield from _server_checks(settings, settings.location)
    state = doctor_node.look(settings)
    yield from doctor_node.node_checks(settings, state)
    if not state.running:
        yield from port_checks(settings)
    yield from doctor_node.call_checks(os.environ, settings.db, state)


def _named(db: str | Path | None) -> dict[str, Any]:
    """The settings that name the database."""
    from cli.node_url import location

    if db is None:
        return {}
    place = location(db, {})
    if isinstance(place, Path):
        return {"db": place, "database_url": "", "database_password_file": ""}
    return {"database_url": str(place)}


def _file_checks(settings: "Settings") -> Iterator["DoctorCheck"]:
    """What the node's file holds."""
    from cli import doctor_database, doctor_machine
    from server.domain.doctor_check import DoctorCheck
    from server.store.export import snapshot

    path = settings.db
    if not path.exists():
        yield doctor_machine.folder_check(path)
        return
    if not path.is_file():
        yield DoctorCheck(
            "database", "broken", f"{path} is not a file", "name the right one with --db"
        )
        return
    try:
        yield doctor_database.log_check(path, settings.durability)
        with snapshot(path) as db:
            schema = doctor_database.schema_check(db)
            yield schema
            yield doctor_machine.permissions_check(path)
            yield doctor_database.integrity_check(db)
            yield from _held_checks(db, settings, schema, time.time_ns() // 1000)
    except sqlite3.Error as error:
        yield DoctorCheck(
            "database",
            "broken",
            f"{path}: {error}",
            "stop the node and restore the file from a backup (`cacp backup` makes them)",
        )


def _server_checks(settings: "Settings", url: "DatabaseUrl") -> Iterator["DoctorCheck"]:
    """What a server says of itself, which replicas run, and what the node's database holds."""
    import psycopg

    from cli import doctor_postgresql
    from server.domain.doctor_check import DoctorCheck
    from server.domain.errors import Refusal
    from server.store.export import view
    from server.store.postgresql import duties, replicas
    from server.store.postgresql.examine import examine as ask_server
    from server.store.postgresql.fitness import tables

    try:
        facts = ask_server(url)
        with view(url) as db:
            schema = doctor_postgresql.schema_check(db)
            is_made = schema.state != "broken" and bool(tables(db))
            known, now = replicas.every(db) if is_made else ([], 0)
            running = sum(not replica.is_away(now) for replica in known)
            yield from doctor_postgresql.server_checks(facts, running)
            yield schema
            if is_made:
                lease, now = duties.look(db)
                yield from doctor_postgresql.replicas_checks(known, lease, now)
                yield from _held_checks(db, settings, schema, now)
    except (psycopg.Error, Refusal, ValueError) as error:
        problem = error.message if isinstance(error, Refusal) else str(error).strip()
        yield DoctorCheck(
            "database",
            "broken",
            f"{url.shown}: {problem.partition(chr(10))[0]}",
            "start the server, or correct CACP_DATABASE_URL; the server's log says more",
        )


def _held_checks(
    db: "Connection", settings: "Settings", schema: "DoctorCheck", now: int
) -> Iterator["DoctorCheck"]:
    """What a database holds; its peers too, because they are registered there."""
    from cli import doctor_database
    from cli.doctor_content import content_checks
    from cli.doctor_operator import operator_check
    from cli.doctor_peers import peer_checks
    from server.store.checks import store_checks
    from server.store.stamps import newest_stamp

    yield from content_checks(db)
    # A database of an earlier release doesn't have all of these tables yet.
    if schema.state == "ok":
        yield from store_checks(db, now, newest_stamp(db))
        yield doctor_database.search_check(db)
        yield operator_check(db, settings.db)
    yield from peer_checks(db, settings)


def _print(check: "DoctorCheck") -> None:
    from cli import views
    from cli.doctor_check import as_text

    views.console().print(as_text(check), soft_wrap=True)
