"""Cuts the power at many moments of an account, starts a node on what is left, and judges it.

What a start finds must be, byte for byte, the database as it was after some commit: so nothing is
half there. Which commits it may be depends on what callers had been told.
"""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from server.store import digests, stamps
from server.store.sqlite import database_integrity
from server.store.sqlite.connection import Durability
from tests.acceptance import ledger
from tests.faults import images, shim
from tests.faults.account import Account, Cut, Entry, Synced, Told, Wrote
from tests.faults.callers import PROPOSAL, started
from tests.faults.images import Disk
from tests.support.node import AGENT

DB = "node.db"
LOG = f"{DB}-wal"
FRAME_HEADER_BYTES = 24
AFTER_MAX = 1_000
"""Microseconds; `Context.after` is one after what it replaces."""


@dataclass
class Figures:
    """What was found. `lost`: images in which something acknowledged was not there."""

    entries: int = 0
    syncs: int = 0
    commits: int = 0
    told: int = 0
    moments: int = 0
    images: int = 0
    examined: int = 0
    lost: int = 0

    def __add__(self, other: "Figures") -> "Figures":
        mine, theirs = vars(self), vars(other)
        return Figures(**{name: mine[name] + theirs[name] for name in mine})

    def __str__(self) -> str:
        return ", ".join(f"{value} {name}" for name, value in vars(self).items())


class Survey:
    """Goes through an account once. `each` images at each sync, and at `between` random moments
    beside; each `deep`th state that a start finds is examined row by row."""

    def __init__(
        self, account: Account, folder: Path, seed: int, durability: Durability = "FULL"
    ) -> None:
        self.account = account
        self.folder = folder
        self.dice = Random(seed)
        self.durability = durability
        self.figures = Figures()
        self._disk = Disk()
        self._states: list[str] = []
        """The database after each commit, as a hash."""
        self._sure = -1
        """The oldest state that a power loss may leave: nobody was told of anything later."""
        self._fresh = False
        """The last state is not synced yet."""
        self._refused: dict[str, int] = {}
        """States that a commit made whose sync failed, and the states that they came after."""
        self._told: list[Told] = []
        self._commit: int | None = None
        """Where in the log the last page of a transaction begins, while it is being written."""

    async def run(self, *, each: int, between: int, deep: int, at_syncs: bool = True) -> Figures:
        entries = self.account.entries
        syncs = set(self.account.syncs() if at_syncs else [])
        others = set(self.dice.sample(range(len(entries)), min(between, len(entries))))
        begun = next(at for at, one in enumerate(entries) if isinstance(one, Told))
        for at, entry in enumerate(entries):
            if self._ends_commit(entry):
                self._states.append(self._kept())
                self._commit, self._fresh = None, True
            if at in syncs or at in others:
                self.figures.moments += 1
                for _ in range(each):
                    await self._cut_power(known=at > begun, deep=deep)
            self._disk.take(entry)
            self._note(entry)
        found = self.figures
        found.entries, found.syncs, found.told = (
            len(entries),
            len(self.account.syncs()),
            len(self._told),
        )
        found.commits = len(self._states)
        return found

    def _note(self, entry: Entry) -> None:
        if isinstance(entry, Told):
            self._told.append(entry)
            self._states = self._states or [self._kept()]
        in_log = isinstance(entry, Wrote | Synced) and entry.file == self._disk.file(LOG)
        if isinstance(entry, Wrote):
            is_head = len(entry.content) == FRAME_HEADER_BYTES and any(entry.content[4:8])
            if in_log and is_head:
                self._commit = entry.at
            return
        synced = in_log and isinstance(entry, Synced) and not entry.failed
        if in_log and isinstance(entry, Synced) and entry.failed and self._fresh:
            # It was refused, and may be there all the same.
            self._refused[self._states.pop()] = len(self._states) - 1
        if in_log:
            self._fresh = False
        if synced if self.durability == "NORMAL" else isinstance(entry, Told):
            self._sure = len(self._states) - 1

    def _ends_commit(self, entry: Entry) -> bool:
        """Whether a transaction is whole in the log: what comes next there is not its last page,
        nor the checksums of what it had spilled before. (A checkpoint may write beside it.)"""
        if self._commit is None or isinstance(entry, Told):
            return self._commit is not None
        if not isinstance(entry, Wrote | Cut | Synced) or entry.file != self._disk.file(LOG):
            return False
        more = isinstance(entry, Wrote) and 0 < entry.at <= self._commit + FRAME_HEADER_BYTES
        return not more

    def _may_be(self, state: str) -> bool:
        """Whether a start may find the database so."""
        sure = max(self._sure, 0)
        return (
            state in self._states[sure:]
            or self._refused.get(state, -1) >= sure
            or (self._commit is not None and state == self._kept())
        )

    def _kept(self) -> str:
        """The state that a kill would leave now."""
        folder = self.folder / "kept"
        images.write(self._disk.kept(), folder)
        with closing(sqlite3.connect(folder / DB)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        state = _hash(folder / DB)
        shutil.rmtree(folder)
        return state

    async def _cut_power(self, *, known: bool, deep: int) -> None:
        folder, number = self.folder / "started", self.figures.images
        image = self._disk.lost(self.dice)
        images.write(image, left := self.folder / f"image-{number}")
        images.write(image, folder)
        self.figures.images += 1
        # A node that nobody has heard of yet has nothing to lose, but must start. (What is started
        # here need not be synced, which takes most of the time.)
        with shim.below(folder):
            async with started(folder / DB, self.durability):
                pass
        if known:
            state = _hash(folder / DB)
            if not self._may_be(state):
                self.figures.lost += 1
                where = self._states.index(state) if state in self._states else None
                raise AssertionError(
                    f"{left}: state {where} of {len(self._states)}, {self._sure} is told"
                )
            if self.dice.randrange(deep) == 0:
                self.figures.examined += 1
                told = self._told if self.durability == "FULL" else []
                await examine(folder / DB, told)
        shutil.rmtree(folder)
        shutil.rmtree(left)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def examine(path: Path, told: list[Told]) -> None:
    """Is everything there that callers were told, and does the node work on?"""
    ledger.check(path)
    with closing(sqlite3.connect(path)) as db:
        assert database_integrity.damage(db) == []
        assert database_integrity.broken_references(db) == {}
        stamp = stamps.newest_stamp(db)
        for one in told:
            what, (*value, newest) = one
            assert newest <= stamp, one
            assert _is_there(db, what, value), one
        _check_digests(db)
    async with started(path) as office:
        # What takes the place of something is stamped after it, and may be after its transaction.
        assert office.last_stamp > stamp - AFTER_MAX
        for key, contract, _ in (value for what, value in told if what == "retry"):
            given = {"projectId": _project(path), **PROPOSAL}
            made = await office.call(AGENT, "cacp/contract/propose", key, **given)
            assert made["contractId"] == contract
        assert (await office.health.examine()).reason in (None, "disk_low")


def _project(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        return str(db.execute("SELECT project_id FROM projects").fetchone()[0])


def _is_there(db: sqlite3.Connection, what: str, value: list[Any]) -> bool:
    first, *more = value or [None]
    if what == "contract":
        (facts,) = db.execute("SELECT count(*) FROM facts WHERE contract_id = ?", (first,))
        return bool(facts[0] > more[0])
    if what == "packet":
        return bool(db.execute("SELECT 1 FROM packets WHERE packet_id = ?", (first,)).fetchone())
    if what == "message":
        found = db.execute(
            "SELECT count(*) FROM messages m JOIN delivery_log d ON d.message_id = m.id"
            " WHERE m.id = ? AND d.recipient = ?",
            (first, more[0]),
        )
        return bool(found.fetchone()[0])
    if what == "acknowledged":
        found = db.execute(
            "SELECT count(*) FROM delivery_log d JOIN json_each(?) j ON d.message_id = j.value"
            " WHERE d.recipient = ? AND d.status = 'read'",
            (json.dumps(first), more[0]),
        )
        return bool(found.fetchone()[0] == len(first))
    if what == "handoff":
        found = db.execute("SELECT status FROM handoffs WHERE id = ?", (first,)).fetchone()
        return found is not None and (found[0] == more[0] or more[0] == "proposed")
    return what in ("retry", "found")


def _check_digests(db: sqlite3.Connection) -> None:
    """Counted on from where the node was, the digests are those of a count from the beginning."""
    counts = []
    for sql in (
        "",
        "DELETE FROM digests; DELETE FROM digest_sums; "
        "DELETE FROM meta WHERE name = 'digest_cursor'",
    ):
        db.executescript(sql)
        while not digests.catch_up(db):
            pass
        counts.append(digests.held(db))
    assert counts[0] == counts[1]
    db.rollback()
