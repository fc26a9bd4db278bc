"""Text files that a command was given: what can't be read or written ends it with one line."""

from pathlib import Path

from cli.terminal import USAGE, fail


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(USAGE, f"can't read {path}: {reading_problem(error)}")


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(USAGE, f"can't write {path}: {error.strerror}")


def reading_problem(error: OSError | UnicodeDecodeError) -> str:
    """Why a file can't be read, in a few words."""
    return str(error.strerror) if isinstance(error, OSError) else "it is not UTF-8"
