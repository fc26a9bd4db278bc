"""Checks whether SQLite reads all of a database's write-ahead log (sqlite.org/fileformat2.html,
section 4).

After a crash SQLite reads the log up to the first frame with a wrong checksum and silently skips
the rest. A torn end is no loss, because it was not acknowledged. But with full durability each
commit is on disk before the next one begins, so a skipped commit that another one follows was
acknowledged.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
LITTLE_ENDIAN, BIG_ENDIAN = 0x377F0682, 0x377F0683
"""Magic numbers, which give the byte order of the checksums."""
_TIMES_USED = slice(12, 16)
_SALT = slice(16, 24)
_CHECKSUM = slice(24, 32)
_FRAME_CHECKSUM = slice(16, 24)
_MAX_FRAME = slice(16, 20)
"""The bytes of the log's index with the number of valid frames, in this machine's byte order."""


class WalFrame(NamedTuple):
    """A frame of the log. `upon_commit`: its checksum continues that of the frame before, which is
    the last of a transaction."""

    salt: bytes
    upon_commit: bool


def lost_commits(frames: Iterable[WalFrame], salt: bytes) -> int:
    """The number of acknowledged transactions among the frames that SQLite doesn't read.

    Frames with another salt are from an earlier use of the log and have been copied back. A commit
    that could not be synced was refused, and the next one overwrote it.
    """
    return sum(frame.salt == salt and frame.upon_commit for frame in frames)


def unreadable_commits(database: Path) -> int:
    """The lost commits in the log of a database that a connection has open and has read from.

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
            # SQLite regards the log as empty; the first frame has the salt of its last use.
            file.seek(HEADER_BYTES)
            salt = file.read(FRAME_HEADER_BYTES)[8:16]
            if is_torn(header, salt):
                return 0
        return lost_commits(_frames(file, page_bytes, valid, _order(header)), salt)


def is_sound(header: bytes) -> bool:
    """Whether a log's header has a magic number and a right checksum."""
    magic = int.from_bytes(header[:4], "big")
    if magic not in (LITTLE_ENDIAN, BIG_ENDIAN):
        return False
    return _checksum(header[:24], _order(header)) == struct.unpack(">2I", header[_CHECKSUM])


def is_torn(header: bytes, salt: bytes) -> bool:
    """Whether the power failed while SQLite restarted the log: the header is the new one up to some
    byte, and the former one from there on. `salt` is that of the frames.

    SQLite restarts a log that is copied back completely, and increments two numbers of its header.
    """
    if _number(header[_SALT][:4]) == (_number(salt[:4]) + 1) % 2**32:
        return True
    times = _number(header[_TIMES_USED])
    # With only the higher bytes of the new number written, the difference exceeds one.
    formers = [times - 256**place for place in range(4)]
    return any(
        is_sound(header[:12] + struct.pack(">I", former) + salt + header[_CHECKSUM])
        for former in formers
        if former >= 0
    )


def _number(content: bytes) -> int:
    return int.from_bytes(content, "big")


def _order(header: bytes) -> str:
    """The byte order of the checksums, for `struct`."""
    return ">" if _number(header[:4]) == BIG_ENDIAN else "<"


def _checksum(content: bytes, order: str, begin: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """The checksum of an even number of words; `begin` is that of the bytes before."""
    first, second = begin
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for word, next_word in zip(words[::2], words[1::2], strict=True):
        first = (first + word + second) & 0xFFFFFFFF
        second = (second + next_word + first) & 0xFFFFFFFF
    return first, second


def _page_bytes(database: Path) -> int:
    with database.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
    return 65_536 if size == 1 else size


def _frames(file: BinaryIO, page_bytes: int, after: int, order: str) -> Iterator[WalFrame]:
    """The frames after the first `after` ones."""
    size = FRAME_HEADER_BYTES + page_bytes
    end = os.fstat(file.fileno()).st_size
    before = b""
    for at in range(HEADER_BYTES + size * after, end - size + 1, size):
        file.seek(at)
        head = file.read(FRAME_HEADER_BYTES)
        upon_commit = before[4:8] not in (b"", b"\0\0\0\0") and before[8:16] == head[8:16]
        if upon_commit:
            begin = struct.unpack(">2I", before[_FRAME_CHECKSUM])
            checksum = _checksum(head[:8] + file.read(page_bytes), order, begin)
            upon_commit = checksum == struct.unpack(">2I", head[_FRAME_CHECKSUM])
        yield WalFrame(head[8:16], upon_commit)
        before = head
