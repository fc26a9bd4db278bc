"""A webhook's receiver: a real HTTP server that answers as a test says, and keeps what it got."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One request. Header names are in lower case."""

    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)["data"]

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class WebhookReceiver:
    """`answer` is a status, `redirect`, `hang` (until it is released) or `endless`."""

    def __init__(self) -> None:
        self.answer: int | str = 204
        self.received: list[Received] = []
        self.release = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(headers, self.rfile.read(length)))
                receiver.respond(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/mail"

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.received]

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        answer = self.answer
        if answer == "hang":
            self.release.wait(60)
            answer = 204
        if answer == "endless":
            handler.send_response(200)
            handler.end_headers()
            try:
                while not self.release.is_set():
                    handler.wfile.write(b"x" * 16_384)
            except OSError:
                pass
            handler.close_connection = True
            return
        handler.send_response(302 if answer == "redirect" else int(answer))
        if answer == "redirect":
            handler.send_header("location", self.url)
        handler.send_header("content-length", "0")
        handler.end_headers()

    def serve(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiver() -> Iterator[WebhookReceiver]:
    made = WebhookReceiver()
    made.serve()
    try:
        yield made
    finally:
        made.close()
