"""`cacp doctor`: is everything that a node needs in order, and how is it mended?"""

import errno
import os
import shutil
import socket
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from cli.client import own_url
from cli.doctor_content import content_checks
from cli.offline import DbOption
from cli.terminal import REFUSED, JsonOption, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from peers.clock import Reading
    from server.settings import Settings
    from server.store.peers import Peer

LOW_DISK = 1_000_000_000
NO_DISK = 100 * 1024 * 1024
YEARS = range(2025, 2100)
PEER_SECONDS = 3.0

State = Literal["ok", "warning", "broken"]
SIGNS: dict[State, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "broken": ("✗", "red"),
}


class Check(NamedTuple):
    """What was looked at, what was found, and how to mend it ("" when there is nothing to)."""

    name: str
    state: State
    found: str
    mend: str = ""


def doctor(
    db: DbOption = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar="CACP_CONFIG", help="The TOML file that `cacp serve` is given."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check all that a node needs, and say how to mend it.

    Looks at settings, clock, disk, database, peers and port, with the CACP_* variables that
    `cacp serve` reads, and changes nothing. Exit status 1 when something is broken, not for a
    warning.

    \b
    Examples:
      cacp doctor
      cacp doctor --db team.db --json
    """
    checks: list[Check] = []
    for check in examine(db, config):
        checks.append(check)
        if not as_json:
            _print(check)
    broken = sum(check.state == "broken" for check in checks)
    if as_json:
        print_json({"healthy": not broken, "checks": [check._asdict() for check in checks]})
    if broken:
        raise typer.Exit(REFUSED)


def examine(db: Path | None, config: Path | None) -> Iterator[Check]:
    """Every check, one after the other."""
    from server.settings import load

    try:
        settings = load(config, db=db)
    except ValueError as error:
        yield Check("settings", "broken", str(error), "set it as docs/settings.md says")
        return
    yield Check("settings", "ok", f"{settings.agent} on {settings.host}:{settings.port}")
    yield from variable_checks(os.environ)
    yield clock_check(time.time())
    yield disk_check(settings.db)
    yield from _database(settings)
    yield from _port(settings)


def clock_check(now: float) -> Check:
    """Is the year sane? `now` is in seconds since 1970."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if time.gmtime(now).tm_year not in YEARS:
        return Check("clock", "broken", f"it is {moment}", "set the clock; use NTP")
    return Check("clock", "ok", moment)


def variable_checks(variables: Iterable[str]) -> Iterator[Check]:
    """A warning for each name of a variable that begins as ours do and that nothing reads."""
    from server.settings import misspelt

    for name, meant in misspelt(variables).items():
        mend = f"did you mean {meant}?" if meant else "docs/settings.md lists those that there are"
        yield Check("variables", "warning", f"nothing reads {name}", mend)


def disk_check(db: Path) -> Check:
    """Is there room for the database to grow?"""
    folder = next(parent for parent in db.resolve().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:.1f} GB free where the database lies"
    mend = "free some space: a full disk stops every write"
    state: State = "broken" if free < NO_DISK else "warning" if free < LOW_DISK else "ok"
    return Check("disk", state, found, "" if state == "ok" else mend)


def _database(settings: "Settings") -> Iterator[Check]:
    from server.store.export import snapshot

    path = settings.db
    if not path.exists():
        yield _folder(path)
        return
    if not path.is_file():
        yield Check("database", "broken", f"{path} is no file", "name the right one with --db")
        return
    try:
        yield _log(path, settings.durability)
        with snapshot(path) as db:
            schema = _schema(db)
            yield schema
            yield _permissions(path)
            yield from _soundness(db)
            for finding in content_checks(db):
                yield Check(*finding)
            yield _certainty(db, time.time_ns() // 1000)
            yield _stamps(db, time.time_ns() // 1000)
            yield _deferred(db, time.time_ns() // 1000)
            # A database of an earlier release has no such table yet.
            if schema.state == "ok":
                yield _undelivered(db)
            yield from _peers(db, settings)
    except sqlite3.Error as error:
        yield Check(
            "database",
            "broken",
            f"{path}: {error}",
            "stop the node and restore the file from a backup (`cacp backup` makes them)",
        )


def _folder(path: Path) -> Check:
    folder = next(parent for parent in path.resolve().parents if parent.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check(
            "database", "broken", f"{path} can't be made", f"make {folder} writable for this user"
        )
    return Check("database", "ok", f"{path} is not there yet; the first start makes it")


def _log(path: Path, durability: str) -> Check:
    from server.store.migrate import check_log
    from server.store.schema import Damaged

    try:
        check_log(path)
    except Damaged as error:
        found, _, mend = str(error).partition(". ")
        return Check("log", "broken" if durability == "FULL" else "warning", found, mend)
    return Check("log", "ok", "every commit in it can be read")


def _schema(db: sqlite3.Connection) -> Check:
    from server.store.migrate import pending
    from server.store.schema import Damaged

    try:
        to_run = pending(db)
    except Damaged as error:
        mend = "stop the node and restore the file from a backup: a node refuses it as it is"
        return Check("schema", "broken", str(error), mend)
    except ValueError as error:
        found, _, mend = str(error).partition(". ")
        return Check("schema", "broken", found, mend or "name the right file with --db")
    if to_run:
        found = f"the next start runs {', '.join(to_run)}"
        return Check("schema", "warning", found, "start the node: it makes a backup first")
    return Check("schema", "ok", "the tables are those of this release")


def _permissions(path: Path) -> Check:
    mode = stat.S_IMODE(path.stat().st_mode)
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.resolve().parent, os.W_OK)):
        return Check(
            "permissions",
            "broken",
            f"{path} or its folder can't be written by this user",
            "make both writable for the user that runs the node",
        )
    if mode & 0o007:
        return Check(
            "permissions",
            "warning",
            f"everybody on this machine may open {path} (mode {mode:04o})",
            f"chmod 0600 {path}",
        )
    return Check("permissions", "ok", f"mode {mode:04o}")


def _soundness(db: sqlite3.Connection) -> Iterator[Check]:
    from server.store import check

    restore = "stop the node and restore the file from a backup"
    damage = check.damage(db)
    if damage:
        yield Check("integrity", "broken", "; ".join(damage[:3]), restore)
        return
    lost = check.broken_references(db)
    if lost:
        found = ", ".join(
            f"{count} row{'s' if count > 1 else ''} of {table} refer{'' if count > 1 else 's'}"
            for table, count in lost.items()
        )
        yield Check("integrity", "broken", f"{found} to nothing", restore)
        return
    yield Check("integrity", "ok", "the file is sound")


def _certainty(db: sqlite3.Connection, now: int) -> Check:
    from server.domain.clocks import doubted
    from server.store import stamps

    sure = stamps.kept(db)
    if sure is None or not sure.is_doubtful(now):
        return Check("certainty", "ok", "the clock is where the node left it")
    return Check(
        "certainty",
        "warning",
        f"{doubted(sure, now)}: nothing expires or is archived by it yet",
        "run NTP; if it is right, `cacp clock confirm`",
    )


def _stamps(db: sqlite3.Connection, now: int) -> Check:
    from peers.clock import is_ahead
    from schemas.base import iso
    from server.store import check

    newest = check.newest_stamp(db)
    if is_ahead(newest, now):
        return Check(
            "stamps",
            "warning",
            f"something is stamped {iso(newest)}, which is still to come: a clock was wrong",
            "run NTP; what is written from now on has the right time, and nothing waits for it. "
            "`cacp clock repair` stamps anew what no other node has",
        )
    return Check("stamps", "ok", f"the newest is {iso(newest)}" if newest else "nothing is stored")


def _deferred(db: sqlite3.Connection, now: int) -> Check:
    from schemas.base import iso
    from server.store import deferred

    ahead, shares = deferred.ahead(db, now), deferred.by_source(db)
    if ahead.messages:
        return Check(
            "deferred",
            "warning",
            f"{ahead.messages} message{'s' if ahead.messages > 1 else ''} from peers, stamped too "
            f"far ahead of the time, and not shown before {iso(ahead.until)}",
            "run NTP on the peers' machines; `cacp clock deferred` shows them, `cacp clock accept` "
            "takes them in now",
        )
    if shares:
        waiting = sum(one.messages for one in shares)
        return Check(
            "deferred",
            "warning",
            f"{waiting} message{'s' if waiting > 1 else ''} from peers, {shares[0].messages} of "
            f"them from {shares[0].source}, which wait for projects that are unknown here, or for "
            "versions and rounds that they follow on",
            "see that those peers are up: what is waited for is fetched from them. "
            "`cacp peers deferred` lists it, and drops it",
        )
    return Check("deferred", "ok", "nothing from peers waits")


def _undelivered(db: sqlite3.Connection) -> Check:
    from server.store import undelivered

    found = undelivered.every(db)
    if not found:
        return Check("undelivered", "ok", "peers have taken all that they were sent")
    peer, held = next(iter(found.items()))
    name, one = next(iter(held.items()))
    count = sum(map(len, found.values()))
    return Check(
        "undelivered",
        "warning",
        f"{count} not taken; the first by {peer}: {name.entity} {name.entity_id}: {one.reason}",
        "`cacp peers` lists them; `cacp peers retry` tries again, `cacp peers drop` gives up",
    )


def _peers(db: sqlite3.Connection, settings: "Settings") -> Iterator[Check]:
    from concurrent.futures import ThreadPoolExecutor

    from server.store import peers

    known = peers.every(db)
    yield from _registrations(db, known)
    if not known:
        yield Check("peers", "ok", "none are registered")
        return
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield from pool.map(_peer, known, [settings.loopback] * len(known))
        readings = pool.map(_reading, known, [settings] * len(known))
        yield clocks_check(dict(zip(known, readings, strict=True)))


def clocks_check(found: "Mapping[Peer, Reading | None]") -> Check:
    """Does this machine's clock tell the time of the nodes that have a key?"""
    from peers.clock import reckon
    from server.domain.clocks import Deferred, trouble

    keyed = {peer.agent_id: one for peer, one in found.items() if peer.secret is not None}
    measured = {
        name: ahead
        for name, one in keyed.items()
        if one is not None and (ahead := one.at(one.received, 0)) is not None
    }
    verdict = reckon(measured, len(keyed) + 1)
    wrong = trouble(verdict, has_jumped=False, newest=0, deferred=Deferred(), now=0, name=str)
    if wrong is not None:
        detail, mend = wrong.detail.rsplit(". ", 1)
        return Check("clocks", "warning", detail, mend)
    if not measured:
        return Check("clocks", "ok", "no peer told its time")
    return Check("clocks", "ok", f"{verdict.agreeing} of {verdict.clocks} nodes share the time")


def _reading(peer: "Peer", settings: "Settings") -> "Reading | None":
    """What the clock of a peer shows, by that of this machine."""
    import httpx

    from peers.clock import Reading
    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal

    if peer.secret is None:
        return None
    asked = {"jsonrpc": "2.0", "id": 1, "method": "cacp/sync/digest"}
    params = {"prefixes": [""], "source_agent": settings.agent}
    with suppress(Refusal, httpx.HTTPError, ValueError, KeyError, TypeError):
        endpoint = check_endpoint(peer.endpoint, loopback_allowed=settings.loopback)
        sent = time.time_ns() // 1000
        answer = httpx.post(
            endpoint.url,
            json=asked | {"params": params},
            headers={"Authorization": f"Bearer {peer.secret}"},
            timeout=PEER_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )
        theirs = answer.json()["result"]["time"]
        return Reading(sent, int(theirs), time.time_ns() // 1000)
    return None


def _registrations(db: sqlite3.Connection, known: "list[Peer]") -> Iterator[Check]:
    """Is an agent that has a key registered without it, too? A key that is made ends that; one of
    before, or of another node, did not."""
    from server.store import keys, mesh

    for peer in known:
        agent = peer.agent_id
        keyed = keys.is_keyed(db, agent) or mesh.home_at_peer(db, agent) is not None
        if peer.trust == "unkeyed" and keyed:
            found = f"it has a key, and is registered without it at {peer.endpoint}"
            mend = f"cacp peers remove {agent}: whoever registered it so has no key of its"
            yield Check(f"agent {agent}", "warning", found, mend)


def _peer(peer: "Peer", loopback: bool) -> Check:
    """Does the peer answer where it said it would?"""
    import httpx

    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal

    name = f"peer {peer.agent_id}"
    try:
        endpoint = check_endpoint(peer.endpoint, loopback_allowed=loopback)
        card = httpx.get(
            f"{endpoint.url.rstrip('/')}/.well-known/agent.json",
            timeout=PEER_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )
    except Refusal as refusal:
        return Check(name, "broken", refusal.message, "it must register with another endpoint")
    except httpx.HTTPError:
        return Check(
            name,
            "warning",
            f"no answer at {peer.endpoint}",
            "start it, or open the way to it; what it misses waits for it",
        )
    if card.status_code != 200:
        found = f"{peer.endpoint} answers with HTTP {card.status_code}"
        return Check(name, "warning", found, "is it a CACP node? It should have an agent card")
    return Check(name, "ok", f"answers at {peer.endpoint}")


def _port(settings: "Settings") -> Iterator[Check]:
    """Is the port free, or does this very node answer on it, and is it well?"""
    address = f"{settings.host}:{settings.port}"
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        with closing(socket.create_server((settings.host, settings.port), family=family)):
            yield _free_port(settings, address)
            return
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            yield Check("port", "broken", f"{address}: {error.strerror}", "choose another host")
            return
    health = _health(settings)
    agent = one_line(str(health.get("agentId") or ""))
    if agent == settings.agent:
        yield Check("port", "ok", f"the node answers on {address}")
        if health.get("detail"):
            yield Check("health", "warning", str(health["reason"]), one_line(health["detail"]))
        return
    who = f"{agent} answers on {address}" if agent else f"another program has {address}"
    yield Check("port", "broken", who, "stop it, or choose another port with --port or CACP_PORT")


def _free_port(settings: "Settings", address: str) -> Check:
    from server.store.place import is_claimed

    if not is_claimed(settings.db):
        return Check("port", "ok", f"{address} is free: the node isn't running")
    return Check(
        "port",
        "warning",
        f"{address} is free, and yet a node runs on this database: on another port",
        "give `cacp doctor` its settings (CACP_PORT or --config), so that it asks that node",
    )


def _health(settings: "Settings") -> dict[str, Any]:
    """What answers on the node's port says of itself; nothing, when it is no node."""
    import httpx

    url = own_url(settings.host, settings.port)
    with suppress(httpx.HTTPError, ValueError):
        answer = httpx.get(f"{url}/health", timeout=PEER_SECONDS, trust_env=False).json()
        return answer if isinstance(answer, dict) else {}
    return {}


def _print(check: Check) -> None:
    from rich.text import Text

    from cli import views

    sign, tone = SIGNS[check.state]
    line = Text.assemble(
        (f"{sign} ", tone), (f"{check.name:<12} ", "bold"), views.data(check.found)
    )
    if check.mend:
        line.append(f"\n  {'':<12} → {one_line(check.mend)}", tone)
    views.console().print(line, soft_wrap=True)
