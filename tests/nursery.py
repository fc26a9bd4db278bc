"""Node processes that start fast: forked from one that has the imports done.

Each is a process of its own, with its own memory, port and file, and dies of SIGKILL as any other;
only what `python -m cli.main serve` spends on imports is spent once for all of them.
"""

import os
import signal
import subprocess
import sys
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

NURSERY = get_context("forkserver")
NURSERY.set_forkserver_preload(["__main__", "tests.warm"])


class Process:
    """As much of `subprocess.Popen` as tests use, of `cacp ARGS…`; output is appended to a file."""

    def __init__(self, args: list[str], env: dict[str, str], output: Path) -> None:
        self.args = args
        output.touch()
        self._process: ForkServerProcess = NURSERY.Process(
            target=_live, args=(args, env, str(output)), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _live(args: list[str], env: dict[str, str], output: str) -> None:
    """In the new process: take on what a shell would have given it, and be `cacp`."""
    os.environ.clear()
    os.environ.update(env)
    with Path(os.devnull).open("rb") as nothing, Path(output).open("ab") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["cacp", *args]
    from cli.main import main

    main()
