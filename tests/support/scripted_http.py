"""An HTTP server that does as a test says: real sockets, in a thread.

with ScriptedHttp(endless) as server:
    …server.url…
"""

import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

Behaviour = Callable[[BaseHTTPRequestHandler], None]


class ScriptedHttp:
    """Answers every request by `behaviour`, and counts the requests by path.

    It closes each connection after an answer, unless it `keeps` them. A behaviour finds the body of
    its request by `body_of`.
    """

    def __init__(
        self, behaviour: Behaviour, certificate: Path | None = None, *, keeps: bool = False
    ) -> None:
        self.behaviour = behaviour
        self.asked: list[str] = []
        self.sent: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            body = b""

            def do_GET(self) -> None:
                server.asked.append(self.path)
                self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
                server.sent.append(self.body.decode())
                self.close_connection = not keeps
                # The other side may have had enough.
                with suppress(OSError):
                    server.behaviour(self)

            do_POST = do_GET

            def end_headers(self) -> None:
                # Unsaid, a client may find out only with its next request.
                if not keeps:
                    self.send_header("connection", "close")
                super().end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """The body of the request that is answered."""
    found: bytes = vars(request)["body"]
    return found


def answer(body: object, status: int = 200, **headers: str) -> Behaviour:
    """Answers with JSON, or with these bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def behave(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("content-length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return behave


def huge(request: BaseHTTPRequestHandler) -> None:
    """Answers with a body of a terabyte, as fast as it is taken."""
    request.send_response(200)
    request.send_header("content-length", str(10**12))
    request.end_headers()
    while True:
        request.wfile.write(b" " * 65_536)


def endless(request: BaseHTTPRequestHandler) -> None:
    """Answers with a byte now and then."""
    request.send_response(200)
    request.end_headers()
    for _ in range(600):
        request.wfile.write(b" ")
        time.sleep(0.05)


def silent(request: BaseHTTPRequestHandler) -> None:
    """Breaks off without a word."""


def garbage(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"\x00\xff" * 100)
