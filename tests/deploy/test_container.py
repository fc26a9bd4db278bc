"""The container's commands and variables, run as plain commands beside a folder for its volume."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.deploy.test_deploy import ROOT, healthcheck, instructions
from tests.support.node import START_SECONDS, STOP_SECONDS, bearer, free_port

LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "cacp/project/list"}'


class Container:
    """A node as the image starts it, but for its port and for where /data is."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.elsewhere = folder / "elsewhere"
        self.data.mkdir(0o700)
        self.elsewhere.mkdir(0o555)
        self.port = free_port()
        pairs = " ".join(instructions("ENV")).split()
        image = dict(pair.split("=", 1) for pair in pairs if pair.startswith("CACP_"))
        self.variables = {
            **{name: value.replace("/data", str(self.data)) for name, value in image.items()},
            "CACP_PORT": str(self.port),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(self.elsewhere),
            "TMPDIR": str(self.elsewhere),
        }
        command = [word for line in instructions("ENTRYPOINT", "CMD") for word in json.loads(line)]
        self.process = subprocess.Popen(
            command,
            cwd=self.elsewhere,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def healthcheck(self) -> int:
        """Run the image's healthcheck; its exit code."""
        command = [word.replace("/opt/cacp", str(ROOT / "deploy")) for word in healthcheck()]
        return subprocess.run(command, env=self.variables, capture_output=True).returncode

    def listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def until_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.listens() or self.healthcheck() != 0:
            assert self.process.poll() is None, self.process.communicate()[0].decode()
            assert time.monotonic() < deadline, "the node didn't become healthy"
            time.sleep(0.02)

    def until_it_stops_listening(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while self.listens():
            assert time.monotonic() < deadline, "the node still listens"
            time.sleep(0.02)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path)
    try:
        made.until_healthy()
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def test_the_first_start_makes_a_key_that_only_its_owner_reads(container: Container) -> None:
    file = container.data / "key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for key, status in ((None, 401), (file.read_text().strip(), 200)):
        headers = {"content-type": "application/json", **bearer(key)}
        url = f"http://127.0.0.1:{container.port}"
        assert httpx.post(url, content=LIST, headers=headers).status_code == status


def test_it_writes_to_its_volume_only(container: Container) -> None:
    container.process.terminate()
    container.process.wait(STOP_SECONDS)
    written = {path.name for path in container.data.iterdir()}
    assert written == {"cacp.db", "cacp.db.lock", "cacp.db.operator-key", "key"}
    assert list(container.elsewhere.iterdir()) == []


def test_sigterm_lets_an_open_request_finish_and_ends_with_0(container: Container) -> None:
    key = (container.data / "key").read_text().strip()
    with socket.create_connection(("127.0.0.1", container.port), timeout=STOP_SECONDS) as caller:
        head = (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {key}\r\nContent-Length: {len(LIST)}\r\n\r\n"
        )
        caller.sendall(head.encode() + LIST[:10])
        assert container.healthcheck() == 0
        container.process.send_signal(signal.SIGTERM)
        container.until_it_stops_listening()
        caller.sendall(LIST[10:])
        answer = b"".join(iter(lambda: caller.recv(65536), b""))
    assert re.match(rb"HTTP/1\.1 200 .*\r\n\r\n\{.*\"projects\":\[\]", answer, re.DOTALL)
    assert container.process.wait(STOP_SECONDS) == 0


def test_the_healthcheck_of_a_stopped_node_fails(container: Container) -> None:
    container.process.kill()
    container.process.wait()
    assert container.healthcheck() == 1
