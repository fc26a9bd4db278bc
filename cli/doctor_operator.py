"""What `cacp doctor` checks of the operator key file."""

from pathlib import Path

from server.domain.doctor_check import DoctorCheck
from server.store.connection import Connection


def operator_check(db: Connection, path: Path) -> DoctorCheck:
    """Whether the file beside the database at `path` holds the operator's key, and only its owner
    can read it."""
    from server.auth.key_file import UnusableKeyFile
    from server.auth.operator_key import path_beside, read
    from server.store import keys

    file = path_beside(path)
    if not file.exists():
        if not keys.has_operator(db):
            return DoctorCheck("operator", "ok", "the next start makes the operator key file")
        return DoctorCheck(
            "operator", "warning", f"{file} is lost", "`cacp keys operator` makes it again"
        )
    try:
        key = read(path)
    except UnusableKeyFile as problem:
        remedy = "`cacp keys operator --rotate` makes a new key and file"
        return DoctorCheck("operator", "warning", str(problem), remedy)
    if not keys.is_operators(db, keys.hash_of(key.encode())):
        remedy = "the next start or `cacp keys operator` makes it valid"
        return DoctorCheck("operator", "warning", f"the key in {file} is not valid yet", remedy)
    return DoctorCheck("operator", "ok", f"the operator's key is in {file.name}")
