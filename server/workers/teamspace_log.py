"""The logs of teamspaces as files (acp-canonical §8.2), copied from the database.

A file such as `ROOT/TEAM/handoffs/handoffs.jsonl` has one line for each row of `team_log`, in order
and with its `seq`. The file is its own cursor: rows after its last whole line are appended. So a
crash neither loses nor repeats a line, and a removed file is written again.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import orjson

FILES = {
    "messages": "messages/messages.jsonl",
    "handoffs": "handoffs/handoffs.jsonl",
    "roles": "roles/ledger.jsonl",
    "decisions": "decisions/decisions.jsonl",
    "artifacts": "artifacts/registry.jsonl",
}
TAIL = 1024 * 1024
"""Bytes at the end of a file in which its last whole line is looked for."""


class TeamspaceLog:
    """The file of one log. `last` is the seq of its last line."""

    def __init__(self, root: Path, team: str, log: str) -> None:
        self.path = root / team / FILES[log]
        self.last = self._resume()

    def append(self, rows: Iterable[tuple[int, str]]) -> None:
        """Append the rows (seq, JSON object) that the file lacks, and sync it to disk."""
        lines = [(seq, line) for seq, line in rows if seq > self.last]
        if not lines:
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(b"".join(_line(seq, line) for seq, line in lines))
            file.flush()
            os.fsync(file.fileno())
        self.last = lines[-1][0]

    def _resume(self) -> int:
        """The seq of the last whole line, 0 without one. Truncates a partial line after it."""
        try:
            with self.path.open("r+b") as file:
                size = file.seek(0, os.SEEK_END)
                start = max(0, size - TAIL)
                file.seek(start)
                tail = file.read()
                end = tail.rfind(b"\n") + 1
                if start + end < size:
                    file.truncate(start + end)
                whole = tail[:end].splitlines()
                return int(orjson.loads(whole[-1])["seq"]) if whole else 0
        except FileNotFoundError:
            return 0


def _line(seq: int, line: str) -> bytes:
    entry = {"seq": seq, **orjson.loads(line)}
    return orjson.dumps(entry, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
