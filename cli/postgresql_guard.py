"""Runs one program, such as a PostgreSQL server, for as long as somebody uses it: the end of those
who do, by SIGKILL too, ends the program.

    python postgresql_guard.py '{"command": […], "lifeline": FILE, …}'

Who uses the program holds a shared lock on the file LIFELINE, which the kernel gives up with the
process. The guard, which is the program's parent, waits for the lock of its own. It prints the
program's pid, and exits with the program's status. It is run by path, without the packages of this
installation, so it imports none of them.
"""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TypedDict

PR_SET_PDEATHSIG = 1
STOP_SECONDS = 10.0


class Order(TypedDict):
    """What the guard is to run. The account is that of this process where it is None."""

    command: list[str]
    lifeline: str
    output: str
    """The file to which the program's output is appended."""
    uid: int | None
    gid: int | None
    removed: str | None
    """A folder that is deleted once the program has ended because nobody uses it any more."""


def run(order: Order) -> int:
    """Run the program to its end. Returns its exit status."""
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(kind, signal.SIG_IGN)
    with Path(order["output"]).open("ab") as output:
        child = subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            user=order["uid"],
            group=order["gid"],
            extra_groups=None if order["gid"] is None else [],
            preexec_fn=_in_child,
            start_new_session=True,
        )
    print(child.pid, flush=True)
    lifeline = os.open(order["lifeline"], os.O_RDWR)
    unused = threading.Event()
    threading.Thread(target=_end_when_unused, args=(child, lifeline, unused), daemon=True).start()
    status = child.wait()
    if unused.is_set() and order["removed"] is not None:
        shutil.rmtree(order["removed"], ignore_errors=True)
    return status


def _in_child() -> None:
    """End with the guard, too, and hear the signals that the guard ignores."""
    # A shell starts what runs in the background deaf to SIGQUIT, too.
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(kind, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def _end_when_unused(
    child: subprocess.Popen[bytes], lifeline: int, unused: threading.Event
) -> None:
    fcntl.flock(lifeline, fcntl.LOCK_EX)
    unused.set()
    # At once, without a checkpoint: nobody is there to wait for it.
    child.send_signal(signal.SIGQUIT)
    threading.Event().wait(STOP_SECONDS)
    child.kill()


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1])) & 0xFF)
