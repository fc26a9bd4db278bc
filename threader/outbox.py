"""Reports to a node, on disk: each waits until the node has accepted or finally refused it."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import orjson

from threader.files import write_atomic
from threader.reports import NodeCall

UNAUTHENTICATED, SERVER_ERROR, FORBIDDEN, RATE_LIMITED = -32001, -32000, -32003, -32005
_OPEN_STATES = frozenset({"proposed", "negotiating", "agreed"})


class Fate(Enum):
    """What becomes of a report after the node's response."""

    DELIVERED = "delivered"
    WAITS = "waits"
    """Refused for now; it and the reports that build on it are sent again."""
    ALL_WAIT = "all wait"
    """The node accepts no report now."""
    REFUSED = "refused"
    """It will never be accepted; it is kept for a person to read."""


def fate(error: object) -> Fate:
    """What the `error` of a response means for the report; None means no error. Pure."""
    if error is None:
        return Fate.DELIVERED
    if not isinstance(error, dict):
        return Fate.REFUSED
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    reason = data.get("reason")
    if error.get("code") in (UNAUTHENTICATED, RATE_LIMITED):
        return Fate.ALL_WAIT
    if reason == "illegal_transition":
        # Before all parties agree or complete it is too early; afterwards it is too late.
        early = data.get("from") is None or data["from"] in _OPEN_STATES
        return Fate.WAITS if early else Fate.REFUSED
    if error.get("code") in (FORBIDDEN, SERVER_ERROR) or reason == "not_found":
        return Fate.WAITS
    return Fate.REFUSED


def group_of(call: NodeCall) -> str:
    """Calls with the same group, such as those on one contract, are sent in order."""
    return str(call.params.get("contractId") or call.key)


def refusal_text(refusal: object) -> str:
    """A refusal as text, at most 300 characters."""
    if isinstance(refusal, dict):
        return str(refusal.get("message") or refusal)[:300]
    return str(refusal)[:300]


class Outbox:
    """`outbox.jsonl` holds all reports, `outbox.settled.jsonl` the keys of the settled ones,
    `outbox.refused.jsonl` the refusals, `outbox.waiting.json` why the others wait."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "outbox.jsonl"
        self._settled_path = folder / "outbox.settled.jsonl"
        self._refused_path = folder / "outbox.refused.jsonl"
        self._waiting_path = folder / "outbox.waiting.json"
        self.calls: dict[str, NodeCall] = {}
        for item in _lines(self._path):
            self.calls[item["key"]] = NodeCall(**item)
        self.settled = {item["key"] for item in _lines(self._settled_path)}
        counted = folder / "outbox.delivered"
        if counted.exists():
            # Older runners wrote the number of settled reports.
            self.settled |= set(list(self.calls)[: int(counted.read_text())])
        self.refused = {item["key"]: item["refusal"] for item in _lines(self._refused_path)}
        self.problem: str | None = None
        self.waiting: dict[str, str] = {}
        self.unseen: str | None = None
        """Why the node does not show how the run stands."""
        if self._waiting_path.exists():
            known = orjson.loads(self._waiting_path.read_bytes())
            self.problem, self.waiting = known["problem"], known["calls"]
            self.unseen = known.get("unseen")

    def put(self, calls: Iterable[NodeCall]) -> bool:
        """Store the new ones of `calls`; returns whether there are any."""
        fresh = {call.key: call for call in calls if call.key not in self.calls}
        if not fresh:
            return False
        entries = (
            {"key": call.key, "method": call.method, "params": call.params}
            for call in fresh.values()
        )
        _append(self._path, entries)
        self.calls |= fresh
        return True

    def pending(self) -> list[NodeCall]:
        return [call for key, call in self.calls.items() if key not in self.settled]

    def settle(self, key: str, refusal: object = None) -> None:
        """Mark a call as settled; a refusal is kept for people to read."""
        if refusal is not None:
            _append(self._refused_path, [{"key": key, "refusal": refusal}])
            self.refused[key] = refusal
        _append(self._settled_path, [{"key": key}])
        self.settled.add(key)
        if self.waiting.pop(key, None) is not None or self.problem is not None:
            self.problem = None
            self._write_waiting()

    def wait(self, key: str, why: str) -> None:
        """Keep the call, with the reason."""
        if self.waiting.get(key) != why or self.problem is not None:
            self.waiting[key], self.problem = why, None
            self._write_waiting()

    def all_wait(self, why: str) -> None:
        """Keep every call, with the reason."""
        if self.problem != why:
            self.problem = why
            self._write_waiting()

    def note_unseen(self, why: str | None) -> None:
        """Keep why the node does not show how the run stands; None when it does."""
        if self.unseen != why:
            self.unseen = why
            self._write_waiting()

    def _write_waiting(self) -> None:
        data = {"problem": self.problem, "calls": self.waiting, "unseen": self.unseen}
        write_atomic(self._waiting_path, orjson.dumps(data))

    def summary(self) -> dict[str, Any]:
        """Counts and problems of the reports, for `status` and the run's report."""
        waiting = len(self.pending())
        return {
            "delivered": len(self.settled) - len(self.refused),
            "waiting": waiting,
            "refused": len(self.refused),
            "problems": list(self._problems(waiting)),
        }

    def _problems(self, waiting: int) -> Iterator[str]:
        if waiting and self.problem:
            yield f"{waiting} reports wait: {self.problem}"
        for why, count in Counter(self.waiting.values()).items() if not self.problem else ():
            yield f"{count} reports wait: {why}"
        if self.unseen and not (waiting and self.problem):
            yield f"the node does not show this run: {self.unseen}"
        reasons = Counter(refusal_text(refusal) for refusal in self.refused.values())
        for why, count in reasons.items():
            yield f"{count} reports were finally refused: {why}"


def outbox_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of a run's reports; None when it has none."""
    return Outbox(folder).summary() if (folder / "outbox.jsonl").exists() else None


def _append(path: Path, entries: Iterable[dict[str, Any]]) -> None:
    """Append entries in one write, after the last complete one. The caller holds the run's lock."""
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if size and file.read(1) != b"\n":
            file.truncate(path.read_bytes().rfind(b"\n") + 1)
        file.write(b"".join(orjson.dumps(entry, default=str) + b"\n" for entry in entries))
        file.flush()
        os.fdatasync(file.fileno())


def _lines(path: Path) -> list[dict[str, Any]]:
    """The complete entries of a file. A crash or a write under way may leave the last line torn."""
    if not path.exists():
        return []
    whole = path.read_bytes()
    return [orjson.loads(line) for line in whole[: whole.rfind(b"\n") + 1].splitlines()]
