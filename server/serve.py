"""Runs a node: prepares its database, checks that it is safe to listen, and serves."""

import asyncio
import errno
import gc
import io
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, cast

import structlog
import uvicorn
from starlette.types import ASGIApp

from server.app import make_app
from server.auth import operator_key
from server.auth.bootstrap_key import check_exposed, register_key_file
from server.auth.key_file import UnusableKeyFile
from server.domain.errors import Refusal, Unavailable
from server.domain.location import DatabaseUrl
from server.http.connections import Connections, affordable
from server.http.plain_call import CallEndpoint
from server.http.protocol import HttpProtocol
from server.settings import Settings
from server.store import keys, tokens
from server.store.connection import Connection
from server.store.opening import connect, prepare, storage_at
from server.store.postgresql.agreement import agree
from server.store.sqlite.file_lock import ListenAddress, lock
from server.store.sqlite.file_lock import announce as announce_address
from server.util.log_once import RateLimitedLog

log = structlog.get_logger()

REMEDIES = {
    "storage_full": "free some space on its disk",
    "storage_read_only": "make the file and its folder writable for this user",
    "storage_locked": "another node or program uses it; stop that one",
    "storage_corrupt": "restore it from a backup: `cacp doctor` says more",
    "storage_failed": "check that its folder exists and is writable",
}
"""What to do about an SQLite file that can't be used."""

LOCKED = "storage_locked"

SWITCH_SECONDS = 0.0005
"""How long a thread may hold the interpreter while another waits. A write changes threads several
times, and waits each time for a thread that reads much or makes messages for peers."""


def serve(settings: Settings, announce: Callable[[Settings], None] = lambda settings: None) -> None:
    """Serve until SIGTERM or SIGINT. Raises ValueError, with a line or two, when it can't start.

    `announce` is called once the database is ready and the port is bound; its settings have the
    bound port.
    """
    configure_logs(settings)
    listening = listen_on(settings.host, settings.port)
    settings = settings.model_copy(update={"port": listening[0].getsockname()[1]})
    try:
        locked = _locked(settings)
        prepared = prepare(settings.location, settings.durability)
        secret = _credentials(settings)
    except Refusal as refusal:
        raise ValueError(_unusable(settings, refusal)) from None
    if locked is not None:
        announce_address(locked, ListenAddress(settings.host, settings.port))
    announce(settings)
    _collect_rarely()
    sys.setswitchinterval(SWITCH_SECONDS)
    # uvicorn drains connections, then raises the signal again, which must not end the process.
    signal.signal(signal.SIGTERM, lambda *_: None)
    connections = admission(settings)
    app = make_app(settings, prepared, secret, connections)
    http_server(app, settings, connections, app.rpc).run(sockets=listening)


def _collect_rarely() -> None:
    """Exclude the objects of the start from garbage collection, and collect less often: reference
    counting frees nearly all that a call allocates. What of them is garbage stays, which is less
    than the time of a collection is worth."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def admission(settings: Settings) -> Connections:
    """The limits of connections: those of the settings, lowered to what the process can afford."""
    most = affordable(settings.connections)
    if most < settings.connections:
        mend = "raise the limit of open files (ulimit -n, LimitNOFILE) or lower CACP_CONNECTIONS"
        structlog.get_logger().warning("fewer_connections", most=most, mend=mend)
    return Connections(most, settings.connections_per_address, RateLimitedLog())


class Server(uvicorn.Server):
    """uvicorn's server, without its ten polls a second for a signal: a signal wakes it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._signalled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        # The signal may have arrived before the loop was known.
        if not await self.on_tick(0):
            await self._signalled.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._signalled.set)


def http_server(
    app: ASGIApp, settings: Settings, connections: Connections, calls: CallEndpoint | None = None
) -> Server:
    """The HTTP server of a node. Plain calls go to `calls`, everything else to the application."""
    return Server(
        uvicorn.Config(
            app,
            loop="uvloop" if sys.platform != "win32" else "asyncio",
            http=cast(Any, partial(HttpProtocol, admission=connections, calls=calls)),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=settings.shutdown_seconds,
            timeout_keep_alive=75,
        )
    )


def listen_on(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of `host`, all on one port."""
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            bound = (address[0], port, *address[2:])
            sockets.append(socket.create_server(bound, family=family, backlog=2048))
            port = sockets[0].getsockname()[1]
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        why = "another process listens there" if in_use else error.strerror
        raise ValueError(f"Can't listen on {host}:{port}: {why}") from None
    return sockets


def _locked(settings: Settings) -> int | None:
    """Lock the node's file, or the file beside which a replica keeps what is its own; several
    replicas may share that. Raises Unavailable."""
    try:
        return lock(settings.db)
    except Unavailable as refusal:
        if isinstance(settings.location, DatabaseUrl) and refusal.data["reason"] == LOCKED:
            return None
        raise


def _unusable(settings: Settings, refusal: Refusal) -> str:
    location = settings.location
    if isinstance(location, DatabaseUrl):
        return f"Can't use the database {location.shown}: {refusal.message}"
    return f"Can't use the database {location}: {REMEDIES[str(refusal.data['reason'])]}"


def _credentials(settings: Settings) -> bytes:
    """Register the bootstrap key and the operator's, and check that an exposed node has a key of an
    agent. Returns the node's secret."""
    storage = storage_at(settings.location)
    try:
        with closing(connect(settings.location)) as db:
            db.execute("BEGIN IMMEDIATE")
            register_key_file(db, settings, time.time_ns() // 1000)
            secret = tokens.node_secret(db)
            check_exposed(settings, keys.any_active(db))
            shared = isinstance(settings.location, DatabaseUrl)
            if shared:
                agree(db, _node_of(settings))
            note_operator_key = _operator_key(db, settings.db, shared=shared)
            db.execute("COMMIT")
    except storage.errors as error:
        raise storage.unavailable(error) from error
    note_operator_key()
    return secret


def _node_of(settings: Settings) -> dict[str, str]:
    """Who the node is, by the names of the settings that say so."""
    return {
        "CACP_AGENT_ID": settings.agent,
        "CACP_REPO": settings.repo,
        "CACP_PUBLIC_URL": settings.public_url.rstrip("/"),
    }


def _operator_key(db: Connection, database: Path, *, shared: bool) -> Callable[[], None]:
    """Make the operator key file if it is absent. Without a usable file the node runs without an
    operator; replicas keep the one that they have. Returns what logs the outcome, for after the
    commit."""
    name = operator_key.path_beside(database).name
    if shared and keys.has_operator(db):
        return lambda: None
    try:
        outcome = operator_key.ensure(db, database)
    except UnusableKeyFile as problem:
        keys.drop_operator(db)
        return partial(log.error, "operator_key_refused", file=name, problem=str(problem))
    if outcome == "kept":
        return lambda: None
    return partial(log.info, f"operator_key_{outcome}", file=name)


class _Stderr(io.TextIOBase):
    """stderr without its errors: a log on a full disk must not fail the call that is logged."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def configure_logs(settings: Settings) -> None:
    """Write structured log lines to stderr, also those of libraries."""
    level = getattr(logging, settings.log_level.upper())
    console = settings.log_format == "console" or (
        settings.log_format == "auto" and sys.stderr.isatty()
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Stderr())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(_Stderr())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    # jsonrpcserver would log exceptions that `server.rpc.dispatch` handles and logs itself.
    logging.getLogger("jsonrpcserver").setLevel(logging.CRITICAL)
