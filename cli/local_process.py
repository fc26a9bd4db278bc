"""A node as a process on loopback that ends with this one, for `cacp mesh` and `cacp cluster`."""

import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cacp_launcher import command

STOP_SECONDS = 15.0


class LocalProcess:
    """`cacp serve` with options and CACP_* variables; its log is `FOLDER/node.log`."""

    def __init__(
        self, folder: Path, name: str, port: int, *options: str, variables: Mapping[str, str] = {}
    ) -> None:
        self.folder = folder
        self.name = name
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._options = options
        self._variables = dict(variables)

    @property
    def pid(self) -> int | None:
        """The id of the process that was started here; None unless it runs."""
        running = self.process is not None and self.process.poll() is None
        return self.process.pid if self.process is not None and running else None

    def start(self) -> None:
        """Raises ValueError when another program listens on its port."""
        if self.pid is None:
            self.wait()
        check_free(self.port)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CACP_")}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "node.log").open("ab") as log:
            self.process = subprocess.Popen(
                command("serve", "--attached", *self._options),
                env=clean | self._variables,
                # The node ends when this process does, however that ends.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches only this process, which then ends the nodes in order.
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL: no warning, no clean-up."""
        if self.process is not None:
            self.process.kill()
            self.wait()

    def toggle(self) -> None:
        """Kill it at once if it runs, start it if it doesn't. Raises as `start`."""
        if self.pid is not None:
            self.kill()
        else:
            self.start()

    def stop(self) -> None:
        """End the process; `wait` waits for it."""
        if self.process is not None:
            self.process.terminate()

    def wait(self) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


def check_free(port: int) -> None:
    """Raise ValueError when a program listens on a port of loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise ValueError(
                f"another program listens on port {port}; end it, or name other ports with --port"
            ) from None
