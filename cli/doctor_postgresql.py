"""What `cacp doctor` checks of a PostgreSQL server, and of the replicas on it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemas.plain import one_line
from server.domain.doctor_check import DoctorCheck

if TYPE_CHECKING:
    from server.domain.duty import Lease
    from server.store.connection import Connection
    from server.store.postgresql.examine import ServerFacts
    from server.store.postgresql.replicas import Replica

CLOCK_DIFFERENCE = 1_000_000
"""Microseconds between this machine's clock and the server's that are worth a word."""
LAG = 64 * 1024 * 1024
"""Bytes that a standby may lack before it is worth a word."""
SHORT_MS = 60_000


def server_checks(facts: "ServerFacts", replicas: int) -> Iterator[DoctorCheck]:
    """Every check of what a server says of itself. `replicas` is how many run."""
    size = f"{facts.database_bytes / 1e6:,.1f} MB"
    yield DoctorCheck("server", "ok", f"PostgreSQL {facts.version}, the database has {size}")
    yield writes_check(facts)
    yield durability_check(facts.settings)
    yield timeouts_check(facts.settings)
    yield connections_check(facts, replicas)
    yield standbys_check(facts)
    yield time_check(facts)
    yield pooler_check(facts)


def schema_check(db: "Connection") -> DoctorCheck:
    """Whether the tables are those of this release."""
    from server.domain.errors import Refusal
    from server.store.postgresql.migrate import pending

    try:
        migrations = pending(db, reads_only=True)
    except Refusal as refusal:
        return DoctorCheck("schema", "broken", refusal.message, "see the server's log")
    except ValueError as error:
        finding, _, remedy = str(error).partition(". ")
        return DoctorCheck("schema", "broken", finding, remedy or "name the right database")
    if not migrations:
        return DoctorCheck("schema", "ok", "the tables are those of this release")
    if "baseline" in migrations:
        return DoctorCheck("schema", "ok", "the database is empty; a start makes the tables")
    finding = f"the next start runs {', '.join(migrations)}"
    return DoctorCheck("schema", "warning", finding, "start a replica, or run `cacp migrate`")


def writes_check(facts: "ServerFacts") -> DoctorCheck:
    """Whether the server takes writes."""
    if facts.takes_writes:
        return DoctorCheck("writes", "ok", "the server takes writes")
    return DoctorCheck(
        "writes",
        "broken",
        "the server is a standby or read-only",
        "name the primary: several hosts in the URL with target_session_attrs=read-write find it",
    )


def durability_check(settings: dict[str, str]) -> DoctorCheck:
    """Whether what a node acknowledges survives a crash."""
    if settings.get("fsync") == "off":
        finding = "fsync is off: a power cut destroys the database"
        return DoctorCheck("durability", "broken", finding, "set fsync = on and restart the server")
    commit, standbys = settings.get("synchronous_commit"), settings.get("synchronous_standby_names")
    if commit == "off":
        return DoctorCheck(
            "durability",
            "broken",
            "synchronous_commit is off: a crash loses what was acknowledged",
            "set synchronous_commit = on for this database or user",
        )
    if settings.get("full_page_writes") == "off":
        return DoctorCheck(
            "durability",
            "warning",
            "full_page_writes is off: a power cut may damage the database",
            "set full_page_writes = on, unless the file system writes pages whole",
        )
    if commit == "local" and standbys:
        return DoctorCheck(
            "durability",
            "warning",
            "synchronous_commit is local: a failover may lose what was acknowledged",
            "set synchronous_commit = on for this database or user",
        )
    return DoctorCheck("durability", "ok", f"every commit is synced (synchronous_commit {commit})")


def timeouts_check(settings: dict[str, str]) -> DoctorCheck:
    """Whether the server ends sessions that a node needs."""
    names = [
        name
        for name in ("idle_session_timeout", "statement_timeout", "lock_timeout")
        if 0 < int(settings.get(name, 0)) < SHORT_MS
    ]
    if "idle_session_timeout" in names:
        return DoctorCheck(
            "timeouts",
            "warning",
            f"idle_session_timeout is {int(settings['idle_session_timeout']) / 1000:g} s: replicas "
            "connect again and again",
            "set idle_session_timeout = 0 for this user",
        )
    shown = ", ".join(f"{name} {int(settings[name]) / 1000:g} s" for name in names)
    return DoctorCheck("timeouts", "ok", shown or "the server sets none; each replica sets its own")


def connections_check(facts: "ServerFacts", replicas: int) -> DoctorCheck:
    """Whether the server has connections for the replicas, and for one more while they are
    replaced."""
    from server.store.postgresql.examine import CONNECTIONS_PER_REPLICA

    settings = facts.settings
    most = int(settings["max_connections"]) - int(settings["superuser_reserved_connections"])
    others = facts.connections - facts.connections_of_nodes
    needed = CONNECTIONS_PER_REPLICA * (max(replicas, 1) + 1)
    finding = f"{facts.connections} of {most} are in use; {replicas or 'one'} replicas and one more"
    if others + needed <= most:
        return DoctorCheck("connections", "ok", f"{finding} need up to {needed}")
    return DoctorCheck(
        "connections",
        "warning",
        f"{finding} need up to {needed}, and others have {others}",
        "raise max_connections, or put PgBouncer before it",
    )


def standbys_check(facts: "ServerFacts") -> DoctorCheck:
    """Whether a lost server has a successor, and whether commits wait for one that is away."""
    names = ", ".join(f"{standby.name} ({standby.sync_state})" for standby in facts.standbys)
    waits = facts.settings.get("synchronous_standby_names")
    if waits and not any(standby.sync_state in ("sync", "quorum") for standby in facts.standbys):
        seen = f"only {names}" if names else "none is connected"
        return DoctorCheck(
            "standbys",
            "broken",
            f"every commit waits for a synchronous standby ({waits}), and {seen}",
            "start the standby, or take it out of synchronous_standby_names",
        )
    late = {each.name: each.lag for each in facts.standbys if each.lag and each.lag > LAG}
    if late:
        behind = ", ".join(f"{name} by {lag / 1e6:,.0f} MB" for name, lag in late.items())
        return DoctorCheck(
            "standbys", "warning", f"standbys are behind: {behind}", "see the standby's log"
        )
    if not names:
        return DoctorCheck("standbys", "ok", "none: a lost server is restored from a backup")
    return DoctorCheck("standbys", "ok", f"{names} follow")


def time_check(facts: "ServerFacts") -> DoctorCheck:
    """Whether this machine's clock agrees with that of the server, by which the replicas go."""
    ahead = facts.ahead / 1e6
    if abs(facts.ahead) <= CLOCK_DIFFERENCE + facts.uncertainty:
        return DoctorCheck("server time", "ok", "the server's clock and this one agree")
    return DoctorCheck(
        "server time",
        "warning",
        f"the server's clock is {abs(ahead):,.1f} s {'ahead of' if ahead > 0 else 'behind'} this "
        "one; replicas go by the server's",
        "run NTP on both machines",
    )


def pooler_check(facts: "ServerFacts") -> DoctorCheck:
    """Whether a pooler is between, which keeps notifications from the replicas."""
    if facts.pooled:
        finding = "a pooler is between: replicas learn of each other's writes by asking"
        return DoctorCheck("pooler", "ok", finding)
    return DoctorCheck("pooler", "ok", "the server is reached directly")


def replicas_checks(
    replicas: "list[Replica]", lease: "Lease | None", now: int
) -> Iterator[DoctorCheck]:
    """Which replicas run, and which has the background duty. `now` is the server's time in
    microseconds."""
    running = [replica for replica in replicas if not replica.is_away(now)]
    away = [replica for replica in replicas if replica.is_away(now)]
    if not running:
        yield DoctorCheck("replicas", "ok", "none runs")
        return
    shown = ", ".join(f"{one_line(each.address)} ({one_line(each.version)})" for each in running)
    releases = {each.version for each in running}
    if away:
        lost = ", ".join(one_line(each.address) for each in away)
        yield DoctorCheck(
            "replicas",
            "warning",
            f"{len(running)} run: {shown}; not heard of for seconds: {lost}",
            "see its log: it was killed, is paused, or can't reach the server",
        )
    elif len(releases) > 1:
        yield DoctorCheck(
            "replicas",
            "warning",
            f"{len(running)} run, of {len(releases)} releases: {shown}",
            "finish the upgrade: replace those of the older release",
        )
    else:
        yield DoctorCheck("replicas", "ok", f"{len(running)} run: {shown}")
    holds = {lease.holder} if lease is not None and lease.until >= now else set()
    holder = next((each for each in running if each.replica in holds), None)
    if holder is None:
        yield DoctorCheck(
            "duty",
            "warning",
            "no replica has the background duty: nothing is sent to peers, pushed or expired",
            "one takes it within seconds; if this stays, see the replicas' logs",
        )
    else:
        yield DoctorCheck("duty", "ok", f"{one_line(holder.address)} has the background duty")
