"""A proxy before a node that holds a request, or its answer, while a test does something else.

with StallingProxy() as proxy:                # others reach the node at proxy.url
    proxy.serve(node.port)
    with proxy.hold("request", b"cacp/contract/sync") as held:
        …                               # held.wait(): the request is here, and not at the node
                                        # it is dropped at the end: neither side hears of it
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, Self

from tests.support.waiting import PATIENCE

Side = Literal["request", "answer"]


class HeldRequest:
    """Catches the first exchange whose request holds `mark`."""

    def __init__(self, side: Side, mark: bytes) -> None:
        self.side = side
        self.mark = mark
        self.caught = threading.Event()
        self.over = threading.Event()

    def wait(self) -> None:
        """Return once the exchange is held; AssertionError when none comes."""
        assert self.caught.wait(PATIENCE), f"no {self.side} with {self.mark!r} came"


class StallingProxy:
    """Passes connections on to a port of this machine, one exchange at a time for each."""

    def __init__(self) -> None:
        self._port = 0
        self._known = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._hold: HeldRequest | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def serve(self, port: int) -> None:
        """Say where the node listens: what came before this waits for it."""
        self._port = port
        self._known.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    @contextmanager
    def hold(self, side: Side, mark: bytes) -> Iterator[HeldRequest]:
        """Hold the next exchange with `mark` in its request; others pass. Dropped at the end."""
        self._hold = hold = HeldRequest(side, mark)
        try:
            yield hold
        finally:
            self._hold = None
            hold.over.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        self._known.wait(PATIENCE)
        # A node that is down, and whoever breaks off: the other side sees it closed.
        with (
            suppress(OSError),
            caller,
            socket.create_connection(("127.0.0.1", self._port)) as node,
        ):
            while request := _message(caller):
                hold = self._hold
                held = hold is not None and hold.mark in request and not hold.caught.is_set()
                if held and hold is not None and hold.side == "request":
                    _keep(hold)
                    return
                node.sendall(request)
                answer = _message(node)
                if not answer:
                    return
                if held and hold is not None:
                    _keep(hold)
                    return
                caller.sendall(answer)


def _keep(hold: HeldRequest) -> None:
    hold.caught.set()
    hold.over.wait(PATIENCE)


def _message(source: socket.socket) -> bytes:
    """One whole HTTP message with a length; nothing when the source has closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = source.recv(65_536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    while len(body) < sum(lengths):
        more = source.recv(65_536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body
