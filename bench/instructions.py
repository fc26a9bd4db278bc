"""`make bench-instructions`: the instructions that a call costs, before and after a change.

Callgrind (of valgrind) counts what the processor executes outside the kernel. Such counts repeat
within a few percent whatever else the machine does, where times don't.
"""

import argparse
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench.hot import HOT, hot_body
from bench.load import CONNECTIONS, request
from bench.mail import UNLIMITED
from bench.node import NodeProcess, free_port, running

WARM_UP = 20
ROUNDS = 80
"""How many calls each connection makes before the count and during it."""
ROOT = Path(__file__).parent.parent
_TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Instructions(NamedTuple):
    """Instructions a call, of the event loop's thread and of the others."""

    loop: float
    threads: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-instructions", description=__doc__)
    parser.add_argument("before", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    parser.add_argument("after", nargs="?", help="another one (default: the files as they are)")
    options = parser.parse_args()
    for program in ("valgrind", "callgrind_control"):
        if shutil.which(program) is None:
            raise SystemExit("this needs valgrind (Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory(prefix="cacp-bench-") as name:
        folder = Path(name)
        sides = [
            counted(source(commit, folder / side), folder / side)
            for side, commit in (("before", options.before), ("after", options.after))
        ]
    print(f"Thousands of instructions a call (event loop + threads), {CONNECTIONS} connections")
    for name, before in sides[0].items():
        after = sides[1][name]
        change = sum(after) / sum(before) - 1
        print(f"  {name:18} {_shown(before)}   {_shown(after)}   {change:+7.1%}")


def _shown(count: Instructions) -> str:
    return f"{sum(count) / 1e3:7.0f} = {count.loop / 1e3:4.0f} + {count.threads / 1e3:4.0f}"


def source(commit: str | None, folder: Path) -> Path:
    """A folder with the files of a commit; that of this checkout for None."""
    folder.mkdir()
    if commit is None:
        return ROOT
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True
    ).stdout
    place = folder / "source"
    place.mkdir()
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive, check=True)
    return place


def counted(place: Path, folder: Path) -> dict[str, Instructions]:
    """What each hot method costs a node from these files, and its HTTP stack a constant answer."""
    python, port = sys.executable, free_port()
    serve = [python, "-m", UNLIMITED, "serve", "--db", str(folder / "hot.db"), "--port", str(port)]
    counts: dict[str, Instructions] = {}
    with ExitStack() as stack:
        bare_port = free_port()
        bare = [python, "-m", "bench.bare", str(bare_port)]
        own = stack.enter_context(
            running(_under_callgrind(bare, folder / "bare"), bare_port, "/", cwd=place)
        )
        body = request("cacp/project/list", {})
        counts["own stack"] = count(own, body, folder / "bare")
        node = stack.enter_context(
            running(
                _under_callgrind([*serve, "--repo", "backend-api"], folder / "node"),
                port,
                "/live",
                cwd=place,
            )
        )
        for name in HOT:
            counts[name] = count(node, hot_body(node, name), folder / "node")
            print(f"{folder.name}: {name} counted", file=sys.stderr, flush=True)
    return counts


def _under_callgrind(command: list[str], out: Path) -> list[str]:
    options = ["--instr-atstart=no", "--separate-threads=yes", f"--callgrind-out-file={out}"]
    return ["valgrind", "--tool=callgrind", *options, *command]


def count(server: NodeProcess, body: str, out: Path) -> Instructions:
    """Count what a call costs a server that runs under callgrind, which writes to files `out`…"""
    callers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(CONNECTIONS)]
    _control(server, "-i", "on")
    _post(callers, body, WARM_UP)
    _control(server, "-z")
    _post(callers, body, ROUNDS)
    _control(server, "-d")
    _control(server, "-i", "off")
    for caller in callers:
        caller.close()
    totals: dict[int, float] = {}
    for file in out.parent.glob(f"{out.name}.*-*"):
        thread = int(file.name.rpartition("-")[2])
        total = _TOTAL.search(file.read_text())
        assert total is not None, f"{file.name} has no total"
        totals[thread] = int(total[1]) / (ROUNDS * CONNECTIONS)
        file.unlink()
    loop = totals.pop(1)
    return Instructions(loop, sum(totals.values()))


def _control(server: NodeProcess, *command: str) -> None:
    pid = str(server.process.pid)
    subprocess.run(["callgrind_control", *command, pid], capture_output=True, check=True)


def _post(callers: list[socket.socket], body: str, rounds: int) -> None:
    """Each caller posts `body` once a round, all of them before the first reads its answer."""
    head = (
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    whole = (head + body).encode()
    for _ in range(rounds):
        for caller in callers:
            caller.sendall(whole)
        for caller in callers:
            _read(caller)


def _read(caller: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(caller)
    head, _, rest = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    assert head.startswith(b"HTTP/1.1 200 "), head
    assert length is not None, head
    while len(rest) < int(length[1]):
        rest += _some(caller)


def _some(caller: socket.socket) -> bytes:
    data = caller.recv(65536)
    assert data, "the server closed the connection"
    return data


if __name__ == "__main__":
    main()
