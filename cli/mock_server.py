"""Serves a mock: until it is told to end, or while a command runs that calls it."""

import socket
import subprocess
import threading
from typing import TYPE_CHECKING

from cli.terminal import notice

if TYPE_CHECKING:
    import uvicorn

    from proof.messages import WireRequest
    from proof.mock import Mock, Mocked
    from proof.recording import Recorder


class MockServer:
    """A mock on a socket that listens. It tells on stderr what it is asked; `is_quiet`, only what
    breaks its contract."""

    def __init__(
        self,
        mock: "Mock",
        listening: socket.socket,
        recorder: "Recorder | None",
        *,
        is_quiet: bool,
    ) -> None:
        self._mock, self._listening, self._recorder = mock, listening, recorder
        self._is_quiet = is_quiet
        self.asked = self.refused = 0
        """Requests that came, and those of them that broke a contract or were in none."""

    def serve(self) -> None:
        self._server().run(sockets=[self._listening])

    def serve_beside(self, command: str, environment: dict[str, str]) -> int:
        """Serve while a shell runs a command. Its exit status, as a shell tells it."""
        from cli.live_view import ended_by_signals

        server = self._server()
        serving = threading.Thread(target=server.run, kwargs={"sockets": [self._listening]})
        serving.start()
        try:
            with ended_by_signals():
                done = subprocess.run(["sh", "-c", command], env=environment, check=False)
        finally:
            server.should_exit = True
            serving.join()
        return done.returncode if done.returncode >= 0 else 128 - done.returncode

    def _server(self) -> "uvicorn.Server":
        import uvicorn

        from proof.mock_app import mock_app

        app = mock_app(self._mock, self._seen)
        return uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))

    def _seen(self, request: "WireRequest", mocked: "Mocked") -> None:
        self.asked += 1
        self.refused += bool(mocked.breaches)
        if self._recorder is not None:
            self._recorder.add(request, mocked)
        if mocked.breaches or not self._is_quiet:
            wrong = f" {'; '.join(map(str, mocked.breaches))}" if mocked.breaches else ""
            notice(f"{mocked.answer.status} {request.method} {request.target}{wrong}")
