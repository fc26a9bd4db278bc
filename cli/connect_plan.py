"""Which files connecting and disconnecting change. It reads files and computes; `cli.connect` shows
the changes and makes them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cli.connect_agents import AGENTS, INSTRUCTIONS, Edit, McpCall, Text, edited, undone
from cli.connect_record import Connection, FileRecord, digest
from cli.file_edit import FileEdit, edit_of

Files = dict[str, FileRecord]
"""By path below the top level of a checkout."""


class Plan(NamedTuple):
    """The changes, and what to remember of the files when they are made."""

    changes: list[FileEdit]
    files: Files


def connecting(connection: Connection, program: str, top: Path) -> Plan:
    """What to change in a checkout. Raises ValueError and OSError, which name the file."""
    files = dict(connection.checkouts.get(str(top), {}))
    changes = []
    for path, edits in _edits(connection, program, top).items():
        change = _change(top, path, partial(edited, edits=edits))
        if change is not None:
            known = files.get(str(path))
            changes.append(change)
            before = _before(change.before, known, edits)
            files[str(path)] = FileRecord(before, digest(change.after or ""))
    return Plan(changes, files)


def disconnecting(connection: Connection, top: Path, *, others: bool) -> Plan:
    """What to change in a checkout. With `others`, further agents stay connected there, and what
    they share stays: it is what remains in `files`. Raises as `connecting`."""
    files = connection.checkouts.get(str(top), {})
    edits = _edits(connection, "cacp", top)
    changes, kept = [], {}
    for path, record in files.items():
        if others and Path(path) == INSTRUCTIONS:
            kept[path] = record
            continue
        its_edits = edits.get(Path(path), [])
        change = _change(top, Path(path), partial(_restored, record=record, edits=its_edits))
        changes += [change] if change else []
    return Plan(changes, kept)


def _edits(connection: Connection, program: str, top: Path) -> dict[Path, list[Edit]]:
    """The edits of each file of an agent, under the name that the file has in this checkout."""
    agent = AGENTS[connection.agent]
    edits = agent.edits(McpCall(program, connection.url, connection.key_file))
    names = agent.alternatives
    chosen = {}
    for path, its_edits in edits.items():
        name = next((other for other in names.get(path, ()) if (top / other).exists()), path)
        chosen[name] = its_edits
    return chosen


def _before(text: str | None, known: FileRecord | None, edits: list[Edit]) -> str | None:
    """The text to restore some day, when a file that we may have changed earlier has `text`."""
    if known is None or text is None:
        return text
    return _restored(text, known, edits)


def _restored(text: str | None, record: FileRecord, edits: list[Edit]) -> str | None:
    """A text without what we added to it: what it was, if nobody has changed it since."""
    if text is None or digest(text) == record.after:
        return None if text is None else record.before
    return undone(text, record.before, edits)


def _change(top: Path, path: Path, edit: Callable[[Text], Text]) -> FileEdit | None:
    """The change of one file. A link that leads out of the repository is not followed."""
    file = top / path
    try:
        if not file.resolve().is_relative_to(top):
            raise ValueError(f"it is a link to {file.resolve()}, outside of the repository")
        changes = edit_of(file, edit)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not changed: it is not UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path} is not changed: {error}") from None
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    return changes[0] if changes else None
