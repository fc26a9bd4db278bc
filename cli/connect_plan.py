"""Which files connecting and disconnecting change. It reads files and computes; `cli.connect_steps`
shows the changes and makes them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cli.connect_agents import AGENTS, INSTRUCTIONS, Edit, McpCall, Text, edited, undone
from cli.connect_record import AgentConnection, FileRecord, digest
from cli.file_edit import FileEdit, edit_of, real_path

Files = dict[str, FileRecord]
"""By path below the top level of a checkout."""


class Plan(NamedTuple):
    """The changes, and what to remember of the files when they are made."""

    changes: list[FileEdit]
    files: Files


def connecting(connection: AgentConnection, program: str, top: Path) -> Plan:
    """What to change in a checkout. Raises ValueError and OSError, which name the file."""
    files = dict(connection.checkouts.get(str(top), {}))
    changes: list[FileEdit] = []
    targets: set[Path] = set()
    for paths, edits in _edits(connection, program):
        path = next((other for other in paths[1:] if (top / other).exists()), paths[0])
        # One may be a link to the other, such as CLAUDE.md to AGENTS.md.
        if (target := real_path(top / path)) in targets:
            continue
        targets.add(target)
        change = _change(top, path, partial(edited, edits=edits))
        if change is not None:
            changes.append(change)
            before = _before(change.before, files.get(str(path)), edits)
            files[str(path)] = FileRecord(before, digest(change.after or ""))
    return Plan(changes, files)


def disconnecting(connection: AgentConnection, top: Path, *, others: bool) -> Plan:
    """What to change in a checkout. With `others`, further agents stay connected there, and what
    they share stays: it is what remains in `files`. Raises as `connecting`."""
    files = connection.checkouts.get(str(top), {})
    known = {str(path): edits for paths, edits in _edits(connection, "cacp") for path in paths}
    changes, kept = [], {}
    for path, record in files.items():
        if others and Path(path) == INSTRUCTIONS:
            kept[path] = record
            continue
        undo = partial(_restored, record=record, edits=known.get(path, []))
        change = _change(top, Path(path), undo)
        changes += [change] if change else []
    return Plan(changes, kept)


def _edits(connection: AgentConnection, program: str) -> list[tuple[tuple[Path, ...], list[Edit]]]:
    """The edits of each file of an agent, with the names that the file may have."""
    agent = AGENTS[connection.agent]
    call = McpCall(program, connection.url, connection.key_file)
    return [
        ((path, *agent.alternatives.get(path, ())), edits)
        for path, edits in agent.edits(call).items()
    ]


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
    """The change of one file. A link that leads out of the repository, or to git's own files, is
    not followed: the repository may be anybody's."""
    file = top / path
    try:
        target = real_path(file)
        if not target.is_relative_to(top):
            raise ValueError(f"it is a link to {target}, outside of the repository")
        if ".git" in map(str.lower, target.relative_to(top).parts):
            raise ValueError(f"it is a link to {target}, which is git's own")
        changes = edit_of(file, edit)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not changed: it is not UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path} is not changed: {error}") from None
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    return changes[0] if changes else None
