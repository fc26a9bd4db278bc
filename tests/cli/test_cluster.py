"""`cacp cluster` as its user meets it: real replicas on a real server, killed while they work."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.run import ROOT, cacp, environment_of
from tests.cli.test_mesh import alive
from tests.support.node import START_SECONDS, free_ports
from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.postgresql


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's account can enter: pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


@contextmanager
def running(
    folder: Path, port: int, *options: str
) -> Iterator[tuple["subprocess.Popen[bytes]", Callable[[], str]]]:
    """`cacp cluster`, and what it has printed so far; SIGTERM ends it."""
    output = folder / "output"
    command = [sys.executable, "-m", "cli.main", "cluster", "--folder", str(folder / "cluster")]
    with output.open("w") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port), *options],
            env=environment_of(),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process, output.read_text
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGKILL), output.read_text()[-2000:]


def last(text: str) -> dict[str, Any]:
    """The newest whole picture; one that is being written doesn't count."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    found: dict[str, Any] = json.loads(whole[-1]) if whole else {"ready": 0, "replicas": []}
    return found


class Caller:
    """Makes projects through the proxy; who gets no answer asks again with the same key."""

    def __init__(self, port: int) -> None:
        self._http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False
        )
        self.made: list[str] = []

    def close(self) -> None:
        self._http.close()

    def make(self) -> None:
        name = f"project {len(self.made)}"
        made = self._result("cacp/project/create", name=name, objective="o")
        self.made.append(made["projectId"])

    def _result(self, method: str, **params: object) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        key = {"Idempotency-Key": str(uuid.uuid4())}
        while True:
            try:
                answer = self._http.post("/", json=request, headers=key).json()
            except httpx.TransportError:
                answer = {"error": "no answer"}
            if "result" in answer:
                result: dict[str, Any] = answer["result"]
                return result
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)

    def holds(self) -> bool:
        """Whether all is there that was confirmed, and nothing twice."""
        listed = self._result("cacp/project/list", summary=True, limit=500)["projects"]
        return sorted(self.made) == sorted(project["projectId"] for project in listed)


def test_it_serves_while_its_parts_are_killed_and_loses_nothing(folder: Path) -> None:
    """Issue 16, Done means."""
    port = free_ports(5)
    with running(folder, port, "--json") as (_, printed), ExitStack() as stack:
        eventually(lambda: last(printed())["ready"] == 3, 4 * START_SECONDS)
        caller = stack.enter_context(closing(Caller(port)))
        for _ in range(5):
            caller.make()
        os.kill(last(printed())["replicas"][0]["pid"], signal.SIGKILL)
        for _ in range(5):
            caller.make()
        os.kill(last(printed())["database"]["pid"], signal.SIGKILL)
        for _ in range(5):
            caller.make()

        def whole() -> bool:
            now = last(printed())
            return bool(now["ready"] == 3 and now["database"]["state"] == "up")

        eventually(whole, 4 * START_SECONDS)
        assert caller.holds()
        now = last(printed())
        assert now["replicas"][0]["ends"] >= 1, "it may end again while the database is away"
        assert now["database"]["ends"] == 1
        assert sum(replica["requests"] for replica in now["replicas"]) >= 15
        pids = [now["database"]["pid"], *(replica["pid"] for replica in now["replicas"])]
    assert [alive(pid) for pid in pids] == [False] * 4, "they end with it"


def test_its_processes_end_with_it_however_it_ends(folder: Path) -> None:
    port = free_ports(4)
    with running(folder, port, "--json", "--replicas", "2") as (process, printed):
        eventually(lambda: last(printed())["ready"] == 2, 3 * START_SECONDS)
        now = last(printed())
        process.kill()
        process.wait()
        pids = [now["database"]["pid"], *(replica["pid"] for replica in now["replicas"])]
        eventually(lambda: not any(alive(pid) for pid in pids))


def test_without_a_terminal_it_tells_what_happens(folder: Path) -> None:
    port = free_ports(3)
    with running(folder, port, "--replicas", "1") as (_, printed):
        ready = f"The replica is ready: http://127.0.0.1:{port}"
        eventually(lambda: ready in printed(), 3 * START_SECONDS)
        assert "0 of 1 replica is ready" in printed()


def test_a_database_that_is_no_postgresql_url_is_refused() -> None:
    refused = cacp("cluster", "--database", "data/cacp.db")
    assert refused.exit_code == 2
    assert "takes a URL such as postgresql://" in refused.stderr
