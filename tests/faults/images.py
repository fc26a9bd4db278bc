"""What a power loss may leave of a disk.

What was synced is there. Of what was written since, each part is as it was at some moment since
its last sync: the whole disk, each file, each page or each sector at a moment of its own, so that
writes are lost, reordered and torn; a sector may be cut between two moments, and one that no sync
has seen may hold anything. The index of the log (-shm) is memory, and gone.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

from tests.faults.account import Cut, Entry, Named, Synced, Wrote

T = TypeVar("T")

SECTOR = 512
PAGE = 4096
Unit = Literal["disk", "file", "page", "sector"]
UNITS: tuple[Unit, ...] = ("disk", "file", "page", "sector")
State = tuple[int, bytes]
"""What a sector holds from this moment on: the place of an entry in the account."""


@dataclass
class _File:
    """What programs read of a file, and what of it may not be on disk yet."""

    content: bytearray = field(default_factory=bytearray)
    open_sectors: dict[int, list[State]] = field(default_factory=dict)
    """The states that a sector may be in, the oldest first, where there are several."""
    dirty: set[int] = field(default_factory=set)
    """The sectors that the next sync brings to disk."""
    sizes: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0)])
    """The sizes that the file may have, and since when."""
    cuts: list[int] = field(default_factory=list)
    """When it was cut, as far as that may not be on disk."""

    def sector(self, number: int) -> bytes:
        return bytes(self.content[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def write(self, moment: int, at: int, content: bytes) -> None:
        sectors = range(at // SECTOR, (at + len(content) - 1) // SECTOR + 1)
        for number in sectors:
            self.open_sectors.setdefault(number, [(-1, self.sector(number))])
        self.content.extend(bytes(max(0, at + len(content) - len(self.content))))
        self.content[at : at + len(content)] = content
        for number in sectors:
            self.open_sectors[number].append((moment, self.sector(number)))
        self.dirty.update(sectors)
        self.sizes.append((moment, len(self.content)))

    def cut(self, moment: int, size: int) -> None:
        beyond = len(self.content) - size
        if beyond > 0:
            self.write(moment, size, bytes(beyond))
        del self.content[size:]
        self.sizes.append((moment, size))
        self.cuts.append(moment)

    def sync(self, *, failed: bool) -> None:
        # What a failed sync leaves, the system takes for clean: a later one does not write it.
        if not failed:
            for number in self.dirty:
                del self.open_sectors[number]
            del self.sizes[:-1]
            self.cuts.clear()
        self.dirty.clear()

    def on_the_side_of(self, moment: int, chosen: int) -> int:
        """`chosen`, unless the file was cut between it and `moment`: then that. A file is cut as a
        whole, in the journal of its file system: none has its former size, and holes in it."""
        low, high = sorted((moment, chosen))
        return moment if any(low < cut <= high for cut in self.cuts) else chosen

    @property
    def moments(self) -> set[int]:
        """Those at which something was done that may not be on disk."""
        sectors = {at for states in self.open_sectors.values() for at, _ in states[1:]}
        return sectors | {at for at, _ in self.sizes[1:]}


class Disk:
    """A disk, as an account makes it entry by entry."""

    def __init__(self) -> None:
        self.moment = -1
        self._files: dict[int, _File] = {}
        self._names: dict[str, list[tuple[int, int | None]]] = {}

    def take(self, entry: Entry) -> None:
        """The next entry of the account."""
        self.moment += 1
        match entry:
            case Wrote(file, at, content):
                self._files[file].write(self.moment, at, content)
            case Cut(file, size):
                self._files[file].cut(self.moment, size)
            case Synced(file, folder, failed):
                self._files[file].sync(failed=failed)
                if folder:
                    self._sync_folder()
            case Named(name, file, synced, content):
                states = self._names.setdefault(name, [(-1, None)])
                states.append((self.moment, file))
                if file is not None:
                    self._files[file] = _File(bytearray(content), sizes=[(-1, len(content))])
                if content:
                    del states[:-1]
                if synced:
                    self._sync_folder()

    def _sync_folder(self) -> None:
        for states in self._names.values():
            del states[:-1]

    def file(self, name: str) -> int | None:
        """The file that a name stands for."""
        return self._names[name][-1][1] if name in self._names else None

    def kept(self) -> dict[str, bytes]:
        """The files as programs read them: what is there after a kill."""
        now = {name: states[-1][1] for name, states in self._names.items()}
        return {
            name: bytes(self._files[file].content) for name, file in now.items() if file is not None
        }

    def lost(self, dice: Random) -> dict[str, bytes]:
        """The files after a power loss, by dice."""
        moment_of = _Moments(self, dice)
        image = {}
        for name, states in self._names.items():
            file = _at(states, moment_of(f"name {name}"))
            if file is not None:
                image[name] = self._content(file, moment_of, dice)
        return image

    def _content(self, number: int, moment_of: "_Moments", dice: Random) -> bytes:
        file = self._files[number]
        content = bytearray(file.content)
        sized = moment_of(number)
        for sector, states in file.open_sectors.items():
            start = sector * SECTOR
            content.extend(bytes(max(0, start + SECTOR - len(content))))
            moment = file.on_the_side_of(sized, moment_of(number, sector))
            fresh = start >= file.sizes[0][1]
            content[start : start + SECTOR] = _torn(states, moment, file.cuts, dice, fresh=fresh)
        size = _at(file.sizes, sized)
        return bytes(content[:size].ljust(size, b"\0"))


class _Moments:
    """The moment at which each part of the disk is, chosen once for each."""

    def __init__(self, disk: Disk, dice: Random) -> None:
        self._dice = dice
        self._unit = dice.choice(UNITS)
        self._bias = dice.choice((0.0, 0.1, 0.5, 0.9, 1.0, None, None))
        """How likely a part is as new as can be rather than as old; anything between when None."""
        moments = {moment for file in disk._files.values() for moment in file.moments}
        self._between = sorted(moments) or [disk.moment]
        self._chosen: dict[Hashable, int] = {}

    def __call__(self, file: int | str, sector: int | None = None) -> int:
        part: Hashable = None
        if self._unit == "file" or (self._unit != "disk" and sector is None):
            part = file
        elif self._unit == "page" and sector is not None:
            part = file, sector * SECTOR // PAGE
        elif self._unit == "sector":
            part = file, sector
        if part not in self._chosen:
            self._chosen[part] = self._choose()
        return self._chosen[part]

    def _choose(self) -> int:
        if self._bias is None:
            return self._dice.choice(self._between)
        return self._between[-1] if self._dice.random() < self._bias else -1


def _at(states: list[tuple[int, T]], moment: int) -> T:
    return next(value for since, value in reversed(states) if since <= max(moment, states[0][0]))


def _torn(
    states: list[State], moment: int, whole: list[int], dice: Random, *, fresh: bool
) -> bytes:
    """What a sector holds at a moment; one in ten is cut between it and the next state, unless that
    came to be by what is done as a `whole`."""
    place = max(at for at, (since, _) in enumerate(states) if since <= max(moment, states[0][0]))
    held = states[place][1]
    if fresh and place == 0 and dice.random() < 0.1:
        return dice.randbytes(SECTOR)
    follows = place + 1 < len(states) and states[place + 1][0] not in whole
    if follows and dice.random() < 0.1:
        cut = dice.randrange(SECTOR)
        return states[place + 1][1][:cut] + held[cut:]
    return held


def write(image: dict[str, bytes], folder: Path) -> None:
    """Make the files of an image in a new folder."""
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)
