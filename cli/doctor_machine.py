"""What `cacp doctor` checks on the machine: variables, clock, disk, and access to the file."""

import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from server.domain.doctor_check import DoctorCheck, State

LOW_DISK = 1_000_000_000
NO_DISK = 100 * 1024 * 1024
"""Bytes below which free space is a warning, and below which the node is broken."""
YEARS = range(2025, 2100)
"""The years that a clock which is set can show."""


def variable_checks(variables: Iterable[str]) -> Iterator[DoctorCheck]:
    """A warning for each variable that begins with CACP_ and that nothing reads."""
    from server.setting_sources import misspelt

    for name, suggestion in misspelt(variables).items():
        remedy = (
            f"did you mean {suggestion}?" if suggestion else "docs/settings.md lists all variables"
        )
        yield DoctorCheck("variables", "warning", f"nothing reads {name}", remedy)


def clock_check(now: float) -> DoctorCheck:
    """Whether the year is plausible. `now` is in seconds since 1970."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if time.gmtime(now).tm_year not in YEARS:
        return DoctorCheck("clock", "broken", f"it is {moment}", "set the clock; use NTP")
    return DoctorCheck("clock", "ok", moment)


def disk_check(db: Path) -> DoctorCheck:
    """Whether there is room for the database to grow."""
    free = shutil.disk_usage(_existing_folder(db)).free
    finding = f"{free / 1e9:.1f} GB free where the database is"
    state: State = "broken" if free < NO_DISK else "warning" if free < LOW_DISK else "ok"
    remedy = "" if state == "ok" else "free some space: a full disk stops every write"
    return DoctorCheck("disk", state, finding, remedy)


def folder_check(db: Path) -> DoctorCheck:
    """Whether the first start can make the database, which isn't there yet."""
    folder = _existing_folder(db)
    if not os.access(folder, os.W_OK | os.X_OK):
        return DoctorCheck(
            "database", "broken", f"{db} can't be created", f"make {folder} writable for this user"
        )
    return DoctorCheck("database", "ok", f"{db} does not exist yet; the first start creates it")


def permissions_check(db: Path) -> DoctorCheck:
    """Whether this user can write the database, and whether others can open it."""
    mode = stat.S_IMODE(db.stat().st_mode)
    if not (os.access(db, os.R_OK | os.W_OK) and os.access(db.resolve().parent, os.W_OK)):
        return DoctorCheck(
            "permissions",
            "broken",
            f"{db} or its folder can't be written by this user",
            "make both writable for the user that runs the node",
        )
    if mode & 0o007:
        return DoctorCheck(
            "permissions",
            "warning",
            f"every user of this machine can open {db} (mode {mode:04o})",
            f"chmod 0600 {db}",
        )
    return DoctorCheck("permissions", "ok", f"mode {mode:04o}")


def _existing_folder(path: Path) -> Path:
    return next(parent for parent in path.resolve().parents if parent.exists())
