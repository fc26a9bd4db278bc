"""Serves a mock: until it is told to end, or while a command runs that calls it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from cli.terminal import notice

if TYPE_CHECKING:
    import uvicorn

    from proof.messages import WireRequest
    from proof.mock import Mock, Mocked
    from proof.recording import Recorder

GRACE_SECONDS = 5.0


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
        from proof.hidden_values import HiddenValues

        self._mock, self._listening, self._recorder = mock, listening, recorder
        self._hidden = HiddenValues.of(contract.interface for contract in mock.contracts)
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
                status = _run(command, environment)
        finally:
            server.should_exit = True
            serving.join()
        return status if status >= 0 else 128 - status

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
            breaches = self._hidden.breaches(request, mocked.breaches)
            wrong = f" {'; '.join(map(str, breaches))}" if breaches else ""
            target = self._hidden.request(request).target
            notice(f"{mocked.answer.status} {request.method} {target}{wrong}")


def _run(command: str, environment: dict[str, str]) -> int:
    """The exit status of a shell's command, negative for a signal. With this process ends whatever
    it has started.

    At a terminal it stays in the process group of that, which sends Ctrl-C to all.
    """
    is_apart = not sys.stdin.isatty()
    process = subprocess.Popen(["sh", "-c", command], env=environment, start_new_session=is_apart)
    try:
        return process.wait()
    except BaseException:
        _end(process, is_apart)
        raise


def _end(process: "subprocess.Popen[bytes]", is_apart: bool) -> None:
    """SIGTERM to a process, or to its group; a grace period; SIGKILL."""
    send = os.killpg if is_apart else os.kill
    with suppress(ProcessLookupError):
        send(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        if is_apart or process.returncode is None:
            send(process.pid, signal.SIGKILL)
    process.wait()
