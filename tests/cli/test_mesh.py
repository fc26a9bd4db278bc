"""`cacp mesh` as its user meets it: three real nodes, one killed, all equal again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.cli.run import ROOT, environment_of
from tests.support.node import START_SECONDS, free_ports
from tests.support.waiting import PATIENCE, eventually

CACP = [sys.executable, "-m", "cli.main"]


@contextmanager
def running(folder: Path, port: int, *options: str) -> Iterator[Callable[[], str]]:
    """What `cacp mesh` has printed so far, while it runs; SIGTERM ends it."""
    output = folder / "output"
    with output.open("w") as file:
        process = subprocess.Popen(
            [*CACP, "mesh", "--dir", str(folder / "mesh"), "--port", str(port), *options],
            env=environment_of(),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield output.read_text
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def last(text: str) -> dict[str, Any]:
    """The newest whole picture; one that is being written doesn't count."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    found: dict[str, Any] = json.loads(whole[-1]) if whole else {"equal": False, "nodes": []}
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_kill_one_go_on_start_it_again_and_all_become_equal(tmp_path: Path) -> None:
    """Issue 3, Done means."""
    port = free_ports(3)
    with running(tmp_path, port, "--json") as printed:
        eventually(lambda: up(last(printed())) == 3, 3 * START_SECONDS)
        nodes = last(printed())["nodes"]
        os.kill(nodes[2]["pid"], signal.SIGKILL)
        eventually(lambda: up(last(printed())) == 2)
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "cacp/project/create",
            "params": {"name": "Demo", "objective": "o"},
        }
        assert "result" in httpx.post(nodes[0]["url"], json=request, timeout=PATIENCE).json()
        eventually(lambda: projects(last(printed())) == [1, 1, None])
        assert last(printed())["equal"] is False
        again = subprocess.Popen(
            [*CACP, "serve", "--config", str(tmp_path / "mesh" / "mobile" / "node.toml")],
            env=environment_of(),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(lambda: projects(last(printed())) == [1, 1, 1], 2 * START_SECONDS)
            eventually(lambda: last(printed())["equal"])
        finally:
            again.terminate()
            again.wait(30)
        pids = [one["pid"] for one in nodes]
        assert [alive(pid) for pid in pids[:2]] == [True, True]
    assert [alive(pid) for pid in pids] == [False] * 3, "they end with it"


def up(picture: dict[str, Any]) -> int:
    return sum(node["health"] == "healthy" for node in picture["nodes"])


def projects(picture: dict[str, Any]) -> list[int | None]:
    return [(node["held"] or {}).get("projects") for node in picture["nodes"]]


def test_once_prints_the_equal_mesh_and_ends_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [*CACP, "mesh", "--dir", str(tmp_path), "--port", str(free_ports(3)), "--once"],
        env=environment_of(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "All 3 nodes hold the same" in done.stdout
    assert done.stdout.count("● healthy") == 3
    assert done.stdout.count("● up") == 6
