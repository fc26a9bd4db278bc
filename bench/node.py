"""Server processes to measure."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60.0


class NodeProcess:
    """A server process that answers on a port of its own."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", port: int, seconds: float, db: Path | None
    ) -> None:
        self.process = process
        self.port = port
        self._db = db
        self.start_seconds = seconds
        """From the start of the process to its first answer."""

    def call(self, method: str, params: dict[str, Any]) -> Any:
        body = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["result"]

    def metric(self, name: str) -> float:
        """A metric without labels, as it is now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def number(self, sql: str) -> int:
        """The result of a query for one number in the node's file."""
        assert self._db is not None
        with closing(sqlite3.connect(f"file:{self._db}?mode=ro", uri=True, timeout=60)) as db:
            return int(db.execute(sql).fetchone()[0])

    def processor_seconds(self) -> float:
        """Processor time that the process has used (Linux)."""
        return _used(Path(f"/proc/{self.process.pid}/stat"))

    def loop_seconds(self) -> float:
        """Processor time that the main thread has used, which runs the event loop (Linux)."""
        pid = self.process.pid
        return _used(Path(f"/proc/{pid}/task/{pid}/stat"))

    def resident_bytes(self) -> int:
        """Resident memory of the process (Linux)."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def node(
    db: Path,
    repo: str = "backend-api",
    settings: dict[str, str] | None = None,
    program: str = "cacp_launcher",
) -> Iterator[NodeProcess]:
    """`cacp serve` on this database, with these settings in its environment.

    `program` is the module that runs as `cacp`.
    """
    port = free_port()
    command = [sys.executable, "-m", program, "serve", "--db", str(db), "--port", str(port)]
    with running([*command, "--repo", repo], port, "/live", db, settings) as process:
        yield process


@contextmanager
def bare() -> Iterator[NodeProcess]:
    """The node's own HTTP stack with a constant answer."""
    port = free_port()
    with running([sys.executable, "-m", "bench.bare", str(port)], port, "/") as process:
        yield process


@contextmanager
def stock() -> Iterator[NodeProcess]:
    """The yardstick."""
    port = free_port()
    with running([sys.executable, "-m", "bench.stock", str(port)], port, "/") as process:
        yield process


@contextmanager
def running(
    command: list[str],
    port: int,
    path: str,
    db: Path | None = None,
    settings: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[NodeProcess]:
    """A server started by a command, from when it answers a GET of this path on its port."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CACP_")}
    environment |= settings or {}
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _await_answer(process, port, path)
        yield NodeProcess(process, port, time.monotonic() - started, db)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def _await_answer(process: "subprocess.Popen[bytes]", port: int, path: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            _, errors = process.communicate()
            raise SystemExit(f"The server did not start: {errors.decode()}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                if connection.recv(4) == b"HTTP":
                    return
        except OSError:
            time.sleep(0.002)
    raise SystemExit("The server did not answer")


def _used(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
