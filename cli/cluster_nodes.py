"""The processes of `cacp cluster`: PostgreSQL, replicas of a node, and the proxy before them."""

import hashlib
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cli.cluster_proxy import Proxy, Traffic, UpstreamState
from cli.cluster_restarts import Restarts
from cli.cluster_view import ClusterView, DatabaseView, Event, ReplicaView
from cli.local_postgresql import LocalPostgresql
from cli.local_process import LocalProcess, check_free
from cli.postgresql_binaries import account, enters
from schemas.plain import one_line
from server.domain.location import DatabaseUrl

if TYPE_CHECKING:
    from server.store.postgresql.overview import Overview
    from server.store.postgresql.replicas import Replica

TURN_SECONDS = 0.2
OVERVIEW_SECONDS = 1.0
KEPT_EVENTS = 100
DATABASE = "cacp"
SERVER_NAME = "PostgreSQL"
STATE_FOLDER = Path("/var/lib/cacp-server")
"""Where root keeps a server's data if its account can't enter the folder that was named."""


class Cluster:
    """Replicas on `database`, or on a server of the cluster's own. They run within `with`, and are
    started again when they end. The proxy takes `port`; the replicas take those after it, and the
    server the next.

    Raises ValueError when a part can't start, OSError for its folder.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        replicas: int,
        database: DatabaseUrl | None = None,
        config: Path | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self.server: LocalPostgresql | None = None
        self.replicas: list[LocalProcess] = []
        self.database = database or DatabaseUrl()
        self._ports = [port + place for place in range(1, replicas + 1)]
        self._port = port
        self._given = database
        self._config = config
        self._restarts: dict[str, Restarts] = {}
        self._events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._overview: Overview | None = None
        self._holder: str | None = None
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        for port in self._ports:
            check_free(port)
        self._proxy = Proxy(self._port, self._ports)
        try:
            self.database = self._given or self._start_server()
            self._proxy.__enter__()
            for number, port in enumerate(self._ports, start=1):
                self.replicas.append(self._replica(f"replica-{number}", port, self.database))
                self._restarts[self.replicas[-1].name] = Restarts()
            for replica in self.replicas:
                replica.start()
                self._restarts[replica.name].started(time.monotonic())
            for work in (self._supervise, self._observe):
                self._threads.append(threading.Thread(target=work, daemon=True))
                self._threads[-1].start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        for replica in self.replicas:
            replica.stop()
        for replica in self.replicas:
            replica.wait()
        self._proxy.__exit__()
        if self.server is not None:
            self.server.stop()

    @property
    def url(self) -> str:
        """Where callers reach the cluster."""
        return self._proxy.url

    # --- starting -----------------------------------------------------------------------------

    def _start_server(self) -> DatabaseUrl:
        port = self._ports[-1] + 1
        check_free(port)
        self.server = LocalPostgresql(
            self._server_folder(),
            port=port,
            password=self._password(),
            settings={"max_connections": 200},
        )
        self.server.start()
        self._restarts[SERVER_NAME] = Restarts()
        self._restarts[SERVER_NAME].started(time.monotonic())
        url = self.server.create_database(DATABASE)
        self.url_file.touch(0o600)
        self.url_file.write_text(f"{url}\n")
        return url

    @property
    def url_file(self) -> Path:
        """The file with the URL of the cluster's own database, and its password."""
        return self.folder / "database-url"

    def _server_folder(self) -> Path:
        who = account()
        if who is None or enters(self.folder, who):
            return self.folder / "postgresql"
        which = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return STATE_FOLDER / f"{self.folder.name}-{which}"

    def _password(self) -> str:
        """The server's password; made at the first start, readable by this user alone."""
        path = self.folder / "password"
        if not path.exists():
            path.touch(0o600)
            path.write_text(secrets.token_hex(24) + "\n")
        return path.read_text().strip()

    def _replica(self, name: str, port: int, database: DatabaseUrl) -> LocalProcess:
        options = () if self._config is None else ("--config", str(self._config.resolve()))
        variables = {
            "CACP_HOST": "127.0.0.1",
            "CACP_PORT": str(port),
            "CACP_DB": str(self.folder / "cacp.db"),
            "CACP_DATABASE_URL": str(database),
            "CACP_PUBLIC_URL": self.url,
            # All callers come from the proxy's address.
            "CACP_CONNECTIONS_PER_ADDRESS": "0",
        }
        return LocalProcess(self.folder / name, name, port, *options, variables=variables)

    # --- while it runs ------------------------------------------------------------------------

    def kill(self, place: int) -> None:
        """Kill a replica with SIGKILL; it is started again."""
        if (pid := self.replicas[place].pid) is not None:
            self._say(f"{self.replicas[place].name} (pid {pid}) is killed")
            self.replicas[place].kill()

    def kill_server(self) -> None:
        """Kill the cluster's own PostgreSQL with SIGKILL; it is started again."""
        if self.server is not None and (pid := self.server.pid) is not None:
            self._say(f"{SERVER_NAME} (pid {pid}) is killed")
            self.server.kill()

    def look(self) -> ClusterView:
        """Its state now."""
        overview = self._overview
        known = self._proxy.traffic()
        views = [
            self._view(replica, traffic, overview)
            for replica, traffic in zip(self.replicas, known, strict=True)
        ]
        return ClusterView(self.url, views, self._database(overview), list(self._events))

    def _view(
        self, replica: LocalProcess, traffic: Traffic, overview: "Overview | None"
    ) -> ReplicaView:
        pid = replica.pid
        state = str(traffic.state)
        if pid is None:
            state = "down"
        elif traffic.state == UpstreamState.DOWN:
            state = "starting"
        duty = beat = None
        if overview is not None and (row := _row_of(replica, overview)) is not None:
            duty = overview.holder == row.replica
            beat = (overview.now - row.seen_at) / 1e6
        return ReplicaView(
            replica.name,
            replica.url,
            pid,
            state,
            duty,
            traffic.connections,
            traffic.requests,
            traffic.answer_ms,
            beat,
            self._restarts[replica.name].count,
        )

    def _database(self, overview: "Overview | None") -> DatabaseView:
        server = self.server
        state = "up" if overview is not None else "down"
        if server is not None and server.running and overview is None:
            state = "starting"
        age = None
        if overview is not None and overview.stamp:
            age = max(0.0, (overview.now - overview.stamp) / 1e6)
        return DatabaseView(
            self.database.shown,
            server.pid if server is not None and server.running else None,
            state,
            None if overview is None else overview.server,
            None if overview is None else overview.connections,
            age,
            0 if server is None else self._restarts[SERVER_NAME].count,
        )

    def _say(self, text: str, tone: str = "") -> None:
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        self._events.append(Event(at, one_line(text), tone))

    # --- the threads --------------------------------------------------------------------------

    def _supervise(self) -> None:
        """Start again what has ended."""
        while not self._ending.wait(TURN_SECONDS):
            if self.server is not None:
                self._tend(SERVER_NAME, self.server.running, self.server.restart)
            for replica in self.replicas:
                self._tend(replica.name, replica.pid is not None, replica.start)

    def _tend(self, name: str, runs: bool, start: Callable[[], object]) -> None:
        restarts = self._restarts[name]
        now = time.monotonic()
        if runs:
            return
        if not restarts.is_waiting:
            pause = restarts.ended(now)
            self._say(f"{name} has ended; it is started again in {pause:g} s", "red")
        elif restarts.is_due(now):
            try:
                start()
            except (ValueError, OSError) as error:
                pause = restarts.ended(time.monotonic())
                self._say(f"{name} did not start, again in {pause:g} s: {error}", "red")
            else:
                restarts.started(time.monotonic())
                self._say(f"{name} is started again", "green")

    def _observe(self) -> None:
        """Look at the database every second."""
        import psycopg

        from server.store.postgresql import overview

        connection = None
        while not self._ending.wait(OVERVIEW_SECONDS):
            seen: Overview | None = None
            with suppress(psycopg.Error):
                if connection is None or connection.is_cut:
                    connection = overview.connect(self.database)
                seen = overview.look(connection)
            self._tell_of_duty(seen)
            self._overview = seen
        if connection is not None:
            connection.close()

    def _tell_of_duty(self, overview: "Overview | None") -> None:
        """Say it when another replica has the background duty."""
        if overview is None:
            return
        for replica in self.replicas:
            row = _row_of(replica, overview)
            if row is not None and row.replica == overview.holder != self._holder:
                self._holder = overview.holder
                self._say(f"{replica.name} has the background duty", "cyan")


def _row_of(replica: LocalProcess, overview: "Overview") -> "Replica | None":
    """What a replica told the database last; a killed one's row stays for a while."""
    rows = [row for row in overview.replicas if row.address.endswith(f":{replica.port}")]
    return rows[-1] if rows else None
