"""The proxy before replicas: real connections to real processes, which are killed and stopped."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest

from cli import cluster_proxy
from cli.cluster_proxy import Proxy, UpstreamState
from tests.support.node import free_ports
from tests.support.waiting import PATIENCE, eventually

REPLICA = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

folder = Path(sys.argv[2])

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/events":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"event\\n")
                time.sleep(0.01)
        unready = self.path == "/ready" and (folder / "unready").exists()
        self.answer(503 if unready else 200, str(os.getpid()).encode())
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with (folder / "received").open("ab") as file:
            file.write(body[:20] + b"\\n")
        if self.path == "/never":
            time.sleep(600)
        self.answer(200, body)
    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

class Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Replicas:
    """Two processes and the proxy before them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        first = free_ports(3)
        self.ports = [first + 1, first + 2]
        self.processes = [self.start(place) for place in range(2)]
        self.proxy = stack.enter_context(Proxy(first, self.ports))
        self.states(UpstreamState.READY, UpstreamState.READY)
        self.http = stack.enter_context(self.client())

    def start(self, place: int) -> "subprocess.Popen[bytes]":
        home = self.folder / str(place)
        home.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", REPLICA, str(self.ports[place]), str(home)]
        )

        def end() -> None:
            process.kill()
            process.wait()

        self._stack.callback(end)
        return process

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.proxy.url, timeout=PATIENCE, trust_env=False)

    def states(self, *wanted: UpstreamState) -> None:
        eventually(lambda: tuple(each.state for each in self.proxy.traffic()) == wanted)

    def pid(self) -> int:
        """Of the replica that gets a new connection."""
        return int(httpx.get(f"{self.proxy.url}/who", timeout=PATIENCE, trust_env=False).text)

    def kill(self, place: int) -> None:
        self.processes[place].kill()
        self.processes[place].wait()


@pytest.fixture
def replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replicas]:
    monkeypatch.setattr(cluster_proxy, "CHECK_SECONDS", 0.05)
    with ExitStack() as stack:
        yield Replicas(tmp_path, stack)


def test_connections_are_spread_and_requests_counted(replicas: Replicas) -> None:
    with replicas.client() as one, replicas.client() as other:
        pids = {int(client.get("/who").text) for client in (one, other)}
        assert pids == {process.pid for process in replicas.processes}
        for _ in range(3):
            one.post("/", content=b"hello")
        assert sorted(each.requests for each in replicas.proxy.traffic()) == [1, 4]
        assert [each.connections for each in replicas.proxy.traffic()] == [1, 1]
    eventually(lambda: [each.connections for each in replicas.proxy.traffic()] == [0, 0])


def test_large_bodies_pass_in_both_directions(replicas: Replicas) -> None:
    body = os.urandom(8_000_000)
    assert replicas.http.post("/", content=body).content == body


def test_a_killed_replicas_connections_end_and_the_next_ones_reach_another(
    replicas: Replicas,
) -> None:
    first = int(replicas.http.get("/who").text)
    place = [process.pid for process in replicas.processes].index(first)
    replicas.kill(place)
    other = replicas.processes[1 - place].pid
    assert replicas.pid() == other, "also before a check has found it"
    eventually(lambda: replicas.proxy.traffic()[place].connections == 0)
    assert int(replicas.http.get("/who").text) == other
    replicas.processes[place] = replicas.start(place)
    replicas.states(UpstreamState.READY, UpstreamState.READY)


def test_what_was_sent_is_not_sent_again(replicas: Replicas) -> None:
    def received() -> list[bytes]:
        files = replicas.folder.glob("*/received")
        return [line for file in files for line in file.read_bytes().splitlines()]

    with ExitStack() as stack:
        raw = stack.enter_context(closing(socket.create_connection(place_of(replicas.proxy.url))))
        raw.sendall(b"POST /never HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
        eventually(lambda: received() == [b"hi"])
        busy = [bool(list((replicas.folder / str(at)).glob("received"))) for at in range(2)]
        replicas.kill(busy.index(True))
        raw.settimeout(PATIENCE)
        assert raw.recv(100) == b""
    assert replicas.pid()
    assert received() == [b"hi"]


def test_an_event_stream_flows_and_ends_with_its_replica(replicas: Replicas) -> None:
    with replicas.http.stream("GET", "/events") as response:
        events = response.iter_lines()
        assert [next(events) for _ in range(20)] == ["event"] * 20
        for place in range(2):
            replicas.kill(place)
        with suppress(httpx.TransportError):
            for event in events:
                assert event in ("event", "")


def test_one_that_is_not_ready_is_used_only_while_no_other_is(replicas: Replicas) -> None:
    (replicas.folder / "0" / "unready").touch()
    replicas.states(UpstreamState.UNREADY, UpstreamState.READY)
    assert {replicas.pid() for _ in range(4)} == {replicas.processes[1].pid}
    replicas.kill(1)
    assert replicas.pid() == replicas.processes[0].pid


def test_one_that_is_stopped_gets_no_more_and_its_connections_end(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_proxy, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(cluster_proxy, "SILENT_SECONDS", 1.0)
    with closing(socket.create_connection(place_of(replicas.proxy.url))) as raw:
        eventually(lambda: sum(each.connections for each in replicas.proxy.traffic()) == 1)
        held = [each.connections for each in replicas.proxy.traffic()].index(1)
        replicas.processes[held].send_signal(signal.SIGSTOP)
        eventually(lambda: replicas.proxy.traffic()[held].state == UpstreamState.SILENT)
        assert replicas.pid() == replicas.processes[1 - held].pid
        raw.settimeout(PATIENCE)
        with suppress(ConnectionResetError):
            assert raw.recv(100) == b""
        replicas.processes[held].send_signal(signal.SIGCONT)
    replicas.states(UpstreamState.READY, UpstreamState.READY)


def test_without_any_replica_callers_are_told(replicas: Replicas) -> None:
    for place in range(2):
        replicas.kill(place)
    answer = httpx.post(replicas.proxy.url, content=b"x" * 200_000, trust_env=False)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    error = answer.json()["error"]
    assert (error["code"], error["data"]["reason"]) == (-32000, "no_replica_answers")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"listens on port {port}"):
            Proxy(port, [])


def place_of(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)
