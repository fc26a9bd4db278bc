"""What `cacp doctor` checks in the database file: log, schema, integrity, stamps, what waits."""

import sqlite3
from pathlib import Path

from cli.doctor_check import DoctorCheck, State

RESTORE = "stop the node and restore the file from a backup"


def log_check(path: Path, durability: str) -> DoctorCheck:
    """Whether the write-ahead log can be read to its end.

    A power cut may damage it where commits are not synced; with durability FULL it must not.
    """
    from server.store.migrate import check_log
    from server.store.schema import SchemaDamaged

    try:
        check_log(path)
    except SchemaDamaged as error:
        finding, _, remedy = str(error).partition(". ")
        state: State = "broken" if durability == "FULL" else "warning"
        return DoctorCheck("log", state, finding, remedy)
    return DoctorCheck("log", "ok", "every commit in it can be read")


def schema_check(db: sqlite3.Connection) -> DoctorCheck:
    """Whether the tables are those of this release."""
    from server.store.migrate import pending
    from server.store.schema import SchemaDamaged

    try:
        migrations = pending(db)
    except SchemaDamaged as error:
        return DoctorCheck("schema", "broken", str(error), f"{RESTORE}: no node opens it as it is")
    except ValueError as error:
        finding, _, remedy = str(error).partition(". ")
        return DoctorCheck("schema", "broken", finding, remedy or "name the right file with --db")
    if migrations:
        finding = f"the next start runs {', '.join(migrations)}"
        return DoctorCheck(
            "schema", "warning", finding, "start the node: it creates a backup first"
        )
    return DoctorCheck("schema", "ok", "the tables are those of this release")


def integrity_check(db: sqlite3.Connection) -> DoctorCheck:
    """SQLite's own check of the file, then its foreign keys."""
    from server.store import database_integrity

    damage = database_integrity.damage(db)
    if damage:
        return DoctorCheck("integrity", "broken", "; ".join(damage[:3]), RESTORE)
    broken_references = database_integrity.broken_references(db)
    if broken_references:
        finding = ", ".join(
            f"{count} row{'s' if count > 1 else ''} of {table} refer{'' if count > 1 else 's'}"
            for table, count in broken_references.items()
        )
        return DoctorCheck("integrity", "broken", f"{finding} to nothing", RESTORE)
    return DoctorCheck("integrity", "ok", "the file is sound")


def certainty_check(db: sqlite3.Connection, now: int) -> DoctorCheck:
    """Whether the clock is near the last time that the node was sure of. `now` is a stamp."""
    from server.domain.clocks import doubted
    from server.store import stamps

    sure = stamps.kept(db)
    if sure is None or not sure.is_doubtful(now):
        return DoctorCheck("certainty", "ok", "the clock is where the node left it")
    return DoctorCheck(
        "certainty",
        "warning",
        f"{doubted(sure, now)}: until the clock is confirmed, nothing expires or is archived",
        "run NTP; if the clock is right, run `cacp clock confirm`",
    )


def stamps_check(db: sqlite3.Connection, now: int) -> DoctorCheck:
    """Whether anything stored is stamped ahead of the time. `now` is a stamp."""
    from peers.clock import is_ahead
    from schemas.stamps import iso
    from server.store import database_integrity

    newest = database_integrity.newest_stamp(db)
    if is_ahead(newest, now):
        return DoctorCheck(
            "stamps",
            "warning",
            f"the newest stamp is {iso(newest)}, which is in the future: a clock was wrong",
            "run NTP; new writes get the right time, and nothing waits. `cacp clock repair` gives "
            "new stamps to what no other node has",
        )
    return DoctorCheck(
        "stamps", "ok", f"the newest is {iso(newest)}" if newest else "nothing is stored"
    )


def deferred_check(db: sqlite3.Connection, now: int) -> DoctorCheck:
    """Whether messages of peers wait for their time, or for what they depend on."""
    from schemas.stamps import iso
    from server.store import deferred

    ahead = deferred.ahead(db, now)
    if ahead.messages:
        return DoctorCheck(
            "deferred",
            "warning",
            f"{_messages(ahead.messages)} from peers, stamped too far ahead of the time, not "
            f"shown before {iso(ahead.until)}",
            "run NTP on the peers' machines; `cacp clock deferred` lists the messages, `cacp clock "
            "accept` shows them now",
        )
    shares = deferred.by_source(db)
    if shares:
        waiting = sum(share.messages for share in shares)
        return DoctorCheck(
            "deferred",
            "warning",
            f"{_messages(waiting)} from peers, {shares[0].messages} of them from "
            f"{shares[0].source}: each waits for a project that is unknown here, or for an earlier "
            "version or round",
            "make sure that those peers are up: this node fetches what is missing from them. "
            "`cacp peers deferred` lists the messages, and drops them",
        )
    return DoctorCheck("deferred", "ok", "no message of a peer waits")


def undelivered_check(db: sqlite3.Connection) -> DoctorCheck:
    """Whether peers have refused anything that this node sent to them."""
    from server.store import undelivered

    by_peer = undelivered.every(db)
    if not by_peer:
        return DoctorCheck("undelivered", "ok", "peers have accepted everything sent to them")
    peer, entities = next(iter(by_peer.items()))
    name, failure = next(iter(entities.items()))
    count = sum(map(len, by_peer.values()))
    return DoctorCheck(
        "undelivered",
        "warning",
        f"{count} not accepted; the first by {peer}: {name.entity} {name.entity_id}: "
        f"{failure.reason}",
        "`cacp peers` lists them; `cacp peers retry` tries again, `cacp peers drop` gives up",
    )


def search_check(db: sqlite3.Connection) -> DoctorCheck:
    """Whether the index of full-text search is sound and complete."""
    from server.store import search

    damage = search.damage(db)
    if damage is not None:
        remedy = "`cacp reindex` builds it anew; nothing is lost with it"
        return DoctorCheck("search", "warning", f"the index is damaged: {damage}", remedy)
    waiting = search.waiting(db)
    if waiting or not search.is_ready(db):
        return DoctorCheck("search", "ok", f"about {waiting:,} documents are not indexed yet")
    return DoctorCheck("search", "ok", "everything is indexed")


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"
