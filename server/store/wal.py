"""Does SQLite read all of a database's write-ahead log? (sqlite.org/fileformat2.html, section 4)

After a crash SQLite reads the log up to the first frame that fails its checksum, and leaves the
rest out without a word. A torn end is no loss: nobody was told of it. But with full durability each
commit is on disk before the next begins: one that is left out although another was written upon it
was acknowledged.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
LITTLE_ENDIAN, BIG_ENDIAN = 0x377F0682, 0x377F0683
"""Magic numbers, which tell how checksums read the log."""
_TIMES_USED = slice(12, 16)
_SALT = slice(16, 24)
_CHECKSUM = slice(24, 32)
_FRAME_CHECKSUM = slice(16, 24)
_MAX_FRAME = slice(16, 20)
"""Where the index of the log says how many frames are valid, in this machine's byte order."""


class WalFrame(NamedTuple):
    """`upon_commit`: it was written upon the frame before it, as that stands, and that one is the
    last of a transaction."""

    salt: bytes
    upon_commit: bool


def lost_commits(frames: Iterable[WalFrame], salt: bytes) -> int:
    """How many acknowledged transactions are among the frames that SQLite doesn't read.

    Frames of another salt are of an earlier use of the log, and copied back already. A commit that
    could not be synced was refused, and is no loss: what came next was written over it.
    """
    return sum(frame.salt == salt and frame.upon_commit for frame in frames)


def unreadable_commits(database: Path) -> int:
    """The same for the log of a database that a connection has open, and has read of.

    Raises OSError.
    """
    log = database.with_name(f"{database.name}-wal")
    if not log.exists() or log.stat().st_size <= HEADER_BYTES:
        return 0
    index = database.with_name(f"{database.name}-shm").read_bytes()[:HEADER_BYTES]
    (valid,) = struct.unpack("=I", index[_MAX_FRAME])
    page_bytes = _page_bytes(database)
    with log.open("rb") as file:
        header = file.read(HEADER_BYTES)
        salt = header[_SALT]
        if not is_sound(header):
            # SQLite takes the log for empty. What it was used for last, its first frame tells.
            file.seek(HEADER_BYTES)
            salt = file.read(FRAME_HEADER_BYTES)[8:16]
            if is_torn(header, salt):
                return 0
        return lost_commits(_frames(file, page_bytes, valid, _order(header)), salt)


def is_sound(header: bytes) -> bool:
    """Whether a log's header has its magic number, and the checksum over it holds."""
    magic = int.from_bytes(header[:4], "big")
    if magic not in (LITTLE_ENDIAN, BIG_ENDIAN):
        return False
    return _checksum(header[:24], _order(header)) == struct.unpack(">2I", header[_CHECKSUM])


def is_torn(header: bytes, salt: bytes) -> bool:
    """Whether the power went while the log began anew, `salt` being that of its frames: the header
    is the new one up to some byte, and the former from there on.

    A log begins anew, with one more in two of its numbers, when all of it is copied back.
    """
    if _number(header[_SALT][:4]) == (_number(salt[:4]) + 1) % 2**32:
        return True
    times = _number(header[_TIMES_USED])
    # Where the higher bytes are those of the new number already, it is ahead by more than one.
    formers = [times - 256**place for place in range(4)]
    return any(
        is_sound(header[:12] + struct.pack(">I", former) + salt + header[_CHECKSUM])
        for former in formers
        if former >= 0
    )


def _number(content: bytes) -> int:
    return int.from_bytes(content, "big")


def _order(header: bytes) -> str:
    """How checksums read the log, for `struct`."""
    return ">" if _number(header[:4]) == BIG_ENDIAN else "<"


def _checksum(content: bytes, order: str, begin: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Of a number of words that is even; `begin` is the checksum of what is before."""
    first, second = begin
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


def _page_bytes(database: Path) -> int:
    with database.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
    return 65_536 if size == 1 else size


def _frames(file: BinaryIO, page_bytes: int, after: int, order: str) -> Iterator[WalFrame]:
    """The frames after so many."""
    size = FRAME_HEADER_BYTES + page_bytes
    end = os.fstat(file.fileno()).st_size
    before = b""
    for at in range(HEADER_BYTES + size * after, end - size + 1, size):
        file.seek(at)
        head = file.read(FRAME_HEADER_BYTES)
        upon_commit = before[4:8] not in (b"", b"\0\0\0\0") and before[8:16] == head[8:16]
        if upon_commit:
            begin = struct.unpack(">2I", before[_FRAME_CHECKSUM])
            found = _checksum(head[:8] + file.read(page_bytes), order, begin)
            upon_commit = found == struct.unpack(">2I", head[_FRAME_CHECKSUM])
        yield WalFrame(head[8:16], upon_commit)
        before = head
