"""What is patched in replicas' processes that tests of failures start."""

import os
import signal
import threading
from pathlib import Path

from server.store.postgresql import connection
from server.store.postgresql.connection import PgConnection
from tests.support.skewed_clock import VARIABLE

STOP = "stop"
"""The file beside a replica's clock that has it stop in the middle of its next write."""
LOCK_MS, STATEMENT_MS, IDLE_MS = 1_200, 1_400, 300
ANSWER_SECONDS = 2.0

SHORT_LIMITS = f"{__name__}:shorten_limits"


def shorten_limits() -> None:
    """The limits of statements and locks, much shorter: tests need not wait for seconds. With a
    file of the name STOP the process stops itself while it has the lock of all writers, having
    created a project of that name."""
    connection._LIMITS = (LOCK_MS, STATEMENT_MS, IDLE_MS)
    defaults = PgConnection.__init__.__kwdefaults__
    assert defaults is not None
    defaults["seconds"] = ANSWER_SECONDS
    stop = Path(os.environ[VARIABLE]).with_name(STOP)
    note = PgConnection.note

    def stopping(self: PgConnection, stamp: int, replica: str, number: int) -> None:
        if stop.exists() and self.execute(_STOPPING, (STOP,)).fetchone():
            stop.unlink()
            # To this thread, so that it goes no further.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        note(self, stamp, replica, number)

    PgConnection.note = stopping  # type: ignore[method-assign]


_STOPPING = "SELECT project_id FROM projects WHERE name = ?"
