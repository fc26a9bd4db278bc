"""What was asked of the disk below one folder, in the order in which it was asked."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Wrote(NamedTuple):
    file: int
    at: int
    content: bytes


class Cut(NamedTuple):
    """The file has this size now."""

    file: int
    size: int


class Synced(NamedTuple):
    """`folder`: the names in the folder too, as SQLite does with the first sync of a new log. What
    a failed sync was to bring to disk is not brought there by a later one either."""

    file: int
    folder: bool
    failed: bool = False


class Named(NamedTuple):
    """The name stands for this file now, for none when it is None. Only a sync makes that last,
    which `synced` says has been. A file that was there before the account begins has content."""

    name: str
    file: int | None
    synced: bool = False
    content: bytes = b""


class Told(NamedTuple):
    """A caller has its answer."""

    what: str
    value: Any


Entry = Wrote | Cut | Synced | Named | Told


@dataclass
class Account:
    """A file is a number: a name may stand for several, one after the other."""

    entries: list[Entry] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    """The files that the names stand for."""
    _made: int = 0

    def name(self, name: str, content: bytes = b"") -> int:
        """The file of a name: a new one if it stands for none, which has had its content long."""
        if name not in self.files:
            self._made += 1
            self.files[name] = self._made
            self.entries.append(Named(name, self._made, content=content))
        return self.files[name]

    def unname(self, name: str, *, synced: bool) -> None:
        self.files.pop(name, None)
        self.entries.append(Named(name, None, synced))

    def told(self, what: str, value: Any = None) -> None:
        self.entries.append(Told(what, value))

    def syncs(self) -> list[int]:
        """The places of all syncs."""
        return [at for at, entry in enumerate(self.entries) if isinstance(entry, Synced)]
