"""What `cacp doctor` says of the content that a node holds: is it what was written and signed?"""

import sqlite3
from collections.abc import Iterator
from typing import Literal

State = Literal["ok", "warning", "broken"]


Finding = tuple[str, State, str, str]
"""As doctor's Check: what was looked at, how it is, what was found, and how to mend it."""


def content_checks(db: sqlite3.Connection) -> Iterator[Finding]:
    """Reads every row."""
    yield _files(db)
    yield _entities(db)
    yield _differences(db)
    yield _equivocations(db)


def _files(db: sqlite3.Connection) -> Finding:
    from server.store import recheck

    wrong = recheck.damaged_contents(db)
    if not wrong:
        return "files", "ok", "every content is what its SHA-256 says", ""
    named = ", ".join(one.file_id for one in wrong[:3])
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return (
        "files",
        "broken",
        f"not what their SHA-256 says: {named}{more}",
        "restore a backup, or have them shared anew; who asks for one gets it from a node that has "
        "a copy, which mends it here",
    )


def _equivocations(db: sqlite3.Connection) -> Finding:
    from server.store import equivocations

    found = equivocations.counts(db, unnoted=True)
    if not found:
        return "equivocation", "ok", "no node is known to contradict itself", ""
    return (
        "equivocation",
        "warning",
        "signed two different things under one id: "
        + ", ".join(f"{node} ({count})" for node, count in found.items()),
        "`cacp peers evidence AID` shows both; `cacp peers remove AID` ends the exchange, `cacp "
        "peers note AID` this warning",
    )


def _entities(db: sqlite3.Connection) -> Finding:
    from server.store import digests, recheck

    if digests.is_behind(db):
        return "content", "ok", "not compared: the node has yet to count its last changes", ""
    wrong = recheck.every_wrong(db)
    if not wrong and recheck.sums_are_right(db):
        return "content", "ok", "everything is what its digest was counted of", ""
    named = "; ".join(f"{one.about}: {one.how}" for one in wrong[:3])
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return (
        "content",
        "broken",
        f"{named}{more}" if wrong else "the sums that nodes compare are not those of the digests",
        "see that the disk is sound; stop the node and restore a backup",
    )


def _differences(db: sqlite3.Connection) -> Finding:
    from server.store import alarms

    found = [one for one in alarms.every(db) if one.reason == "content_differs"]
    if not found:
        return "differences", "ok", "no peer stays different from this node", ""
    return (
        "differences",
        "warning",
        "comparing does not make equal with " + ", ".join(one.about for one in found),
        "the logs of both nodes say what is refused; run the same release on both, and `cacp "
        "doctor` on each",
    )
