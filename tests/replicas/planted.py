"""Faults planted in replicas' processes, each of which the judgement of a run must find.

They are designs that look right: `run` of an unpatched replica stays even under the same load.
"""

import random
import time
from typing import Any

from server.methods import base
from server.methods.cacp import contract
from server.store.postgresql import connection
from server.store.postgresql.connection import PgConnection

LATE_SECONDS = 0.02
"""How much later, at most, a planted replica commits: what goes wrong between two transactions has
the time to."""

HERE = "tests.replicas.planted"
EARLY_SEQUENCE = f"{HERE}:lock_the_project"
NO_ROW_LOCK = f"{HERE}:lock_nothing"
LAZY_COMMIT = f"{HERE}:commit_later"


def lock_the_project() -> None:
    """Who writes locks the project that is written, and not all that write. No contract goes wrong
    by that; but sequence numbers are handed out in another order than they are committed in, and
    who follows them skips the late ones."""
    lock_nothing()
    load = base.open_project

    def locked(ctx: Any, project_id: str) -> Any:
        if ctx.transaction is not None:
            ctx.db.execute(_LOCK_PROJECT, (project_id,)).fetchone()
        return load(ctx, project_id)

    contract.open_project = locked  # type: ignore[attr-defined]


_LOCK_PROJECT = "SELECT pg_advisory_xact_lock(hashtext(?))"


def lock_nothing() -> None:
    """Transactions read the last stamp, and lock no row: each decides by what the others have not
    written yet."""
    assert connection._LOCK.endswith(" FOR UPDATE")
    connection._LOCK = connection._LOCK.removesuffix(" FOR UPDATE")
    note = PgConnection.note

    def late(self: PgConnection, stamp: int, replica: str, number: int) -> None:
        self.settle()
        time.sleep(random.uniform(0, LATE_SECONDS))
        note(self, stamp, replica, number)

    PgConnection.note = late  # type: ignore[method-assign]


def commit_later() -> None:
    """A commit is sent without waiting for its answer, which the next transaction collects: callers
    are answered before their writes are durable, or even visible to others."""

    def unanswered(self: PgConnection) -> None:
        self._tell("COMMIT")

    PgConnection.commit = unanswered  # type: ignore[method-assign]
