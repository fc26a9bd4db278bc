"""What `cacp doctor` checks of the stored content: is it still what was written and signed?"""

from collections.abc import Iterator

from server.domain.doctor_check import DoctorCheck
from server.store.connection import Connection

NAMED = 3
"""How many damaged things a finding names; it counts the rest."""


def content_checks(db: Connection) -> Iterator[DoctorCheck]:
    """Compares every row with its digest: takes time in proportion to the database."""
    yield _files_check(db)
    yield _entities_check(db)


def _files_check(db: Connection) -> DoctorCheck:
    from server.store import content_integrity

    damaged = content_integrity.damaged_contents(db)
    if not damaged:
        return DoctorCheck("files", "ok", "every content matches its SHA-256")
    names = [content.file_id for content in damaged]
    return DoctorCheck(
        "files",
        "broken",
        f"contents that don't match their SHA-256: {_some(names, ', ')}",
        "restore a backup, or share the files again; when a caller asks for one, the node fetches "
        "it from a node that has a copy, which repairs it here",
    )


def _entities_check(db: Connection) -> DoctorCheck:
    from server.store import content_integrity, digests

    if digests.is_behind(db):
        finding = "not compared: the node has yet to count its last changes"
        return DoctorCheck("content", "ok", finding)
    mismatches = content_integrity.damaged_entities(db)
    if not mismatches and content_integrity.sums_are_right(db):
        return DoctorCheck("content", "ok", "every entity matches its digest")
    names = [f"{mismatch.about}: {mismatch.how}" for mismatch in mismatches]
    return DoctorCheck(
        "content",
        "broken",
        _some(names, "; ")
        if names
        else "the sums that nodes compare don't match the digests of the entities",
        "check the disk; stop the node and restore a backup",
    )


def _some(names: list[str], separator: str) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return separator.join(names[:NAMED]) + more
