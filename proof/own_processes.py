"""Which processes a command has started, and whether it is they who listen on a port: by /proc, on
Linux."""

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Set
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
LISTEN = "0A"
LOOK_SECONDS = 0.05
_KEEPS_ORPHANS = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); "
    "os.execvp('sh', ['sh', '-c', sys.argv[1]])"
)
"""Before it becomes the shell: PR_SET_CHILD_SUBREAPER (prctl(2)), which exec keeps. Whatever the
command leaves behind, a daemon too, stays a descendant of it while it runs."""


class StartedProcess(NamedTuple):
    """A process by its id, and when it began, in ticks since the machine did: ids come again."""

    pid: int
    began: int


def shell_words(command: str) -> list[str]:
    """The words that run a command in a shell, of which it is then known what it starts."""
    if not knows():
        return ["sh", "-c", command]
    return [sys.executable, "-I", "-S", "-c", _KEEPS_ORPHANS, command]


def knows() -> bool:
    """Whether this system tells which processes there are."""
    return sys.platform == "linux" and (PROC / "net" / "tcp").exists()


def started_by(leader: int, before: Set[StartedProcess] = frozenset()) -> set[StartedProcess]:
    """The processes of the session that `leader` leads, and the descendants of it and of those
    that were known `before`, as far as they run. Empty where nothing is known."""
    started: set[StartedProcess] = set()
    ids = {leader} | {process.pid for process in before}
    everyone = list(_everyone()) if knows() else []
    while new := {
        process
        for process, parent, session in everyone
        if process not in started
        and (parent in ids or session == leader or process.pid == leader or process in before)
    }:
        started |= new
        ids |= {process.pid for process in new}
    return started


def _everyone() -> Iterator[tuple[StartedProcess, int, int]]:
    """Each running process, its parent and its session (proc(5), stat)."""
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # The name, in parentheses, may have any characters.
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    process = StartedProcess(int(entry.name), int(fields[19]))
                    yield process, int(fields[1]), int(fields[3])


def end_all_of(leader: int, grace: float) -> None:
    """End what `started_by` knows: SIGTERM, `grace` seconds, SIGKILL. What belongs to another user
    stays."""
    known = started_by(leader)
    _send(known, signal.SIGTERM)
    deadline = time.monotonic() + grace
    # A leader that is gone leaves its session and its children behind; they may start others.
    while (left := started_by(leader, known)) and time.monotonic() < deadline + grace:
        known |= left
        if time.monotonic() > deadline:
            _send(left, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)


def _send(processes: Set[StartedProcess], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def listens(processes: Set[StartedProcess], host: str, port: int) -> bool:
    """Whether every socket that listens for connections to a host of this machine and a port is of
    these processes, and there is one."""
    wanted = _listening(host, port)
    return bool(wanted) and wanted <= _sockets(processes)


def _listening(host: str, port: int) -> set[str]:
    """The inodes of sockets (proc(5), net/tcp)."""
    addresses = {ip_address(info[4][0]) for info in socket.getaddrinfo(host, port)}
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                words, _, at = fields[1].partition(":")
                if fields[3] != LISTEN or int(at, 16) != port:
                    continue
                address = _address(words)
                if address.is_unspecified or address in addresses:
                    inodes.add(fields[9])
    return inodes


def _address(words: str) -> IPv4Address | IPv6Address:
    """An address as the kernel writes it: words of 32 bits in the machine's order of bytes."""
    parts = (words[at : at + 8] for at in range(0, len(words), 8))
    address = ip_address(b"".join(int(part, 16).to_bytes(4, sys.byteorder) for part in parts))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _sockets(processes: Set[StartedProcess]) -> set[str]:
    """The inodes of all sockets that processes hold, as far as they may be seen."""
    inodes = set()
    for process in processes:
        with suppress(OSError):
            for file in (PROC / str(process.pid) / "fd").iterdir():
                with suppress(OSError):
                    target = str(file.readlink())
                    if target.startswith("socket:["):
                        inodes.add(target[len("socket:[") : -1])
    return inodes
