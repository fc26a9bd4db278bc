"""Node processes that start fast: forked from one that has the imports done.

Each is a process of its own, with its own memory, port and file, and dies of SIGKILL as any other;
only what `python -m cli.main serve` spends on imports is spent once for all of them.
"""

import ctypes
import importlib
import os
import signal
import subprocess
import sys
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

CAP_DAC_OVERRIDE = 1
UNLIMITED_SENDERS = "TEST_UNLIMITED_SENDERS"
"""Set in the environment of a process whose senders of ACP messages have no rate limits."""
PATCH = "TEST_PATCH"
"""Set in the environment of a process in which `module:function` is called first: a fault that a
test plants."""
FORKSERVER = get_context("forkserver")
FORKSERVER.set_forkserver_preload(["__main__", "tests.support.preloaded"])


class ForkedProcess:
    """As much of `subprocess.Popen` as tests use, of `cacp ARGS…`; output is appended to a file,
    or to one for stdout and one for stderr. File modes bind a process without `override`, also
    where the tests run as root."""

    def __init__(
        self,
        args: list[str],
        env: dict[str, str],
        output: Path,
        errors: Path | None = None,
        *,
        override: bool = True,
    ) -> None:
        self.args = args
        output.touch()
        self._process: ForkServerProcess = FORKSERVER.Process(
            target=_live,
            args=(args, env, str(output), str(errors or output), override),
            daemon=True,
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


def _live(args: list[str], env: dict[str, str], output: str, errors: str, override: bool) -> None:
    """In the new process: take on what a shell would have given it, and be `cacp`."""
    os.environ.clear()
    os.environ.update(env)
    for number, path, mode in ((0, os.devnull, "rb"), (1, output, "ab"), (2, errors, "ab")):
        with Path(path).open(mode) as file:
            os.dup2(file.fileno(), number)
    if not override:
        _give_up_override()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["cacp", *args]
    from bench.unlimited import lift_limits
    from cli.main import main
    from tests.support import skewed_clock

    skewed_clock.install()
    if UNLIMITED_SENDERS in os.environ:
        lift_limits()
    if PATCH in os.environ:
        module, _, name = os.environ[PATCH].partition(":")
        getattr(importlib.import_module(module), name)()
    main()


def _give_up_override() -> None:
    """CAP_DAC_OVERRIDE, with which root passes over the modes of files (capabilities(7))."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    # Effective, permitted and inheritable, for capabilities up to 31 and those above.
    held = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, held) == 0, os.strerror(ctypes.get_errno())
    for place in range(3):
        held[place] &= ~(1 << CAP_DAC_OVERRIDE)
    assert libc.capset(header, held) == 0, os.strerror(ctypes.get_errno())
