"""A layer between SQLite and the disk, for any Python: no compiler, and no other SQLite.

SQLite reaches the disk through a VFS, a struct of functions (sqlite.org/vfs.html). Here the open
and delete of the very VFS that Python's sqlite3 uses are exchanged, and the functions of the files
that are opened below a folder: writes, syncs and truncations are kept in an account and may be
refused; locks, the shared index of the log and everything else stay SQLite's own. So the product's
own code runs, on real files, and doesn't know. A sync is only noted: what lasts is up to
`images.py`.
"""

import ctypes
import os
import re
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tests.faults.account import Account, Cut, Synced, Wrote

Kind = Literal["open", "read", "write", "sync", "truncate", "delete"]
Fault = Literal["EIO", "ENOSPC", "short"]

OK, FULL, CANTOPEN = 0, 13, 14
_IOERR: dict[Kind, int] = {
    "open": CANTOPEN,
    "read": 10 | 1 << 8,
    "write": 10 | 3 << 8,
    "sync": 10 | 4 << 8,
    "truncate": 10 | 6 << 8,
    "delete": 10 | 10 << 8,
}
_SYNCS_FOLDER = 0x800 | 0x4000 | 0x80000
"""Journal, super-journal and log: with their first sync, SQLite syncs the folder."""

# Names are passed on as the pointers that they are: SQLite keeps them.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Delete = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
_Transfer = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, as far as it is used here."""

    _fields_ = [
        ("version", c_int),
        ("file_size", c_int),
        ("path_max", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("delete", c_void_p),
    ]


class _Methods(ctypes.Structure):
    """sqlite3_io_methods."""

    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("truncate", c_void_p),
        ("sync", c_void_p),
        ("rest", c_void_p * 13),
    ]


class Call(NamedTuple):
    """What SQLite asks of the disk: `name` is the file's."""

    kind: Kind
    name: str


@contextmanager
def below(
    folder: Path, fault: Callable[[Call], Fault | None] = lambda call: None
) -> Iterator[Account]:
    """Keep account of what SQLite does with the files of a folder; `fault` is asked before each
    call, and may refuse it. Every connection to them is closed before this ends.

    Raises LookupError where this Python's SQLite can't be reached.
    """
    shim = _shim()
    assert shim.folder is None, "one account at a time"
    shim.folder, shim.account, shim.fault = folder.resolve(), Account(), fault
    shim.vfs.open, shim.vfs.delete = shim.pointers
    try:
        yield shim.account
    finally:
        shim.vfs.open, shim.vfs.delete = shim.real_pointers
        shim.folder = None
        shim.opened.clear()
        wrong, shim.wrong = shim.wrong, None
    if wrong is not None:
        raise wrong


class _File:
    """A file that a connection has open."""

    def __init__(self, name: str, number: int, real: _Methods, syncs_folder: bool) -> None:
        self.name = name
        self.number = number
        self.read = _Transfer(real.read)
        self.write = _Transfer(real.write)
        self.truncate = _Truncate(real.truncate)
        self.syncs_folder = syncs_folder


class _Shim:
    """The exchanged functions. They stay for good: a connection may outlive an account."""

    def __init__(self, vfs: _Vfs) -> None:
        self.vfs = vfs
        self.folder: Path | None = None
        self.account = Account()
        self.fault: Callable[[Call], Fault | None] = lambda call: None
        self.wrong: Exception | None = None
        self.opened: dict[int, _File] = {}
        self.real_pointers = vfs.open, vfs.delete
        self._open, self._delete = _Open(vfs.open), _Delete(vfs.delete)
        self._methods: dict[int, _Methods] = {}
        self._kept = [
            _Open(self._guarded(self.open)),
            _Delete(self._guarded(self.delete)),
            _Transfer(self._guarded(self.read)),
            _Transfer(self._guarded(self.write)),
            _Truncate(self._guarded(self.truncate)),
            _Sync(self._guarded(self.sync)),
        ]
        self.pointers = tuple(_address(one) for one in self._kept[:2])

    def _guarded(self, function: Callable[..., int]) -> Callable[..., int]:
        def call(*given: Any) -> int:
            try:
                return function(*given)
            except Exception as error:
                # ctypes would take it for success.
                self.wrong = error
                return _IOERR["read"]

        return call

    def _refused(self, kind: Kind, name: str) -> Fault | None:
        return self.fault(Call(kind, name))

    def _name(self, path: int | None) -> str | None:
        """The name of a file below the folder; None for any other."""
        where = Path(os.fsdecode(ctypes.string_at(path))) if path else None
        return where.name if where and where.parent == self.folder else None

    def _content(self, name: str) -> bytes:
        assert self.folder is not None
        path = self.folder / name
        return path.read_bytes() if name not in self.account.files and path.exists() else b""

    def open(self, vfs: int, path: int | None, file: int, flags: int, out: int | None) -> int:
        name = self._name(path)
        if name and not name.endswith("-shm") and self._refused("open", name):
            c_void_p.from_address(file).value = None
            return CANTOPEN
        content = self._content(name) if name else b""
        status = self._open(vfs, path, file, flags, out)
        if status == OK and name is not None:
            methods = c_void_p.from_address(file)
            real = methods.value
            assert real is not None
            methods.value = ctypes.addressof(self._exchanged(real))
            number = self.account.name(name, content)
            syncs_folder = bool(flags & _SYNCS_FOLDER)
            self.opened[file] = _File(name, number, _Methods.from_address(real), syncs_folder)
        return int(status)

    def _exchanged(self, real: int) -> _Methods:
        if real not in self._methods:
            made = _Methods.from_buffer_copy(_Methods.from_address(real))
            made.read, made.write, made.truncate, made.sync = map(_address, self._kept[2:])
            self._methods[real] = made
        return self._methods[real]

    def read(self, file: int, into: int, size: int, at: int) -> int:
        one = self.opened[file]
        if self._refused("read", one.name):
            return _IOERR["read"]
        return int(one.read(file, into, size, at))

    def write(self, file: int, content: int, size: int, at: int) -> int:
        one = self.opened[file]
        refused = self._refused("write", one.name)
        if refused == "short":
            size //= 2
        if refused in (None, "short"):
            self.account.entries.append(Wrote(one.number, at, ctypes.string_at(content, size)))
            status = int(one.write(file, content, size, at))
            return FULL if refused else status
        return FULL if refused == "ENOSPC" else _IOERR["write"]

    def truncate(self, file: int, size: int) -> int:
        one = self.opened[file]
        if self._refused("truncate", one.name):
            return _IOERR["truncate"]
        self.account.entries.append(Cut(one.number, size))
        return int(one.truncate(file, size))

    def sync(self, file: int, flags: int) -> int:
        one = self.opened[file]
        failed = self._refused("sync", one.name) is not None
        self.account.entries.append(Synced(one.number, one.syncs_folder and not failed, failed))
        one.syncs_folder &= failed
        return _IOERR["sync"] if failed else OK

    def delete(self, vfs: int, path: int, syncs_folder: int) -> int:
        name = self._name(path)
        if name and self._refused("delete", name):
            return _IOERR["delete"]
        status = int(self._delete(vfs, path, syncs_folder))
        if name and status == OK:
            self.account.unname(name, synced=bool(syncs_folder))
        return status


@cache
def _shim() -> _Shim:
    sqlite3.connect(":memory:").close()
    address = exported() or found_in_memory()
    if not address:
        raise LookupError(
            "The SQLite of this Python can't be reached, so what it does when a disk fails can't be"
            " seen: run these tests with another Python (that of a Linux, of pyenv, of uv)"
        )
    return _Shim(_Vfs.from_address(address))


def exported() -> int | None:
    """The address of the VFS where SQLite's functions can be called: it is a library of its own, or
    they are left visible."""
    import _sqlite3

    try:
        find = ctypes.CDLL(getattr(_sqlite3, "__file__", None)).sqlite3_vfs_find
    except (AttributeError, OSError):
        return None
    find.restype, find.argtypes = c_void_p, [c_char_p]
    address: int | None = find(None)
    return address


def found_in_memory() -> int | None:
    """The same where SQLite is a hidden part of the interpreter, as in python-build-standalone: the
    struct named `unix` of version 3, among what programs may write to (Linux)."""
    if sys.platform != "linux":
        return None
    regions = [
        (int(start, 16), int(end, 16), mode, path)
        for start, end, mode, path in re.findall(
            r"^(\w+)-(\w+) (\S+) \S+ \S+ \d+ *(.*)$", Path("/proc/self/maps").read_text(), re.M
        )
    ]
    for start, end, mode, path in regions:
        if not mode.startswith("rw") or not path.startswith("/"):
            continue
        content = ctypes.string_at(start, end - start)
        for match in re.finditer(rb"\x03\0\0\0....\0\x02\0\0\0\0\0\0.{8}(.{8})", content, re.S):
            (name,) = struct.unpack("=Q", match[1])
            readable = any(low <= name < high - 5 for low, high, how, _ in regions if how[0] == "r")
            if readable and ctypes.string_at(name, 5) == b"unix\0":
                return start + match.start()
    return None


def _address(function: Any) -> int | None:
    return ctypes.cast(function, c_void_p).value
