"""`cacp serve`: where it listens, what it says, and how it ends when it can't start."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.cli.run import ROOT, environment_of, process
from tests.support.node import Node
from tests.support.waiting import PATIENCE


def test_on_a_terminal_it_says_where_it_listens_and_what_to_try(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    serving = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "serve", "--port", "0", "--repo", "web"],
        env=environment_of(db=str(tmp_path / "n.db")) | {"COLUMNS": "200", "TERM": "dumb"},
        cwd=ROOT,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    try:
        said = _read_until(ours, "Ctrl-C stops it.")
        assert "aid://localhost/web@1.0.0" in said
        assert "cacp demo" in said
        found = re.search(r"export CACP_URL=(http://127\.0\.0\.1:[0-9]+)", said)
        assert found
        assert httpx.get(f"{found[1]}/health", trust_env=False).json()["repo"] == "web"
        card = httpx.get(f"{found[1]}/.well-known/agent.json", trust_env=False).json()
        assert card["url"] == found[1]
    finally:
        serving.send_signal(signal.SIGINT)
        assert serving.wait(20) == 0
        os.close(ours)


def test_attached_it_ends_with_its_standard_input(tmp_path: Path) -> None:
    """Even when that has ended before the node listens for signals."""
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "serve", "--attached", "--port", "0"],
        env=environment_of(db=str(tmp_path / "n.db")),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
    )
    assert done.returncode in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("stdin", "statuses", "said"),
    [
        ("<&-", (2,), "--attached needs a standard input: it is closed"),
        ("0>/dev/null", (0, -signal.SIGTERM), ""),
    ],
)
def test_attached_to_what_cannot_be_read_it_does_not_stay(
    tmp_path: Path, stdin: str, statuses: tuple[int, ...], said: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m cli.main serve --attached --port 0 {stdin}"],
        env=environment_of(db=str(tmp_path / "n.db")),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode in statuses
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "status", "said"),
    [
        ({"port": "x"}, 2, "port (CACP_PORT): should be a whole number"),
        ({"host": "host.invalid"}, 1, "Can't listen on host.invalid:8080: "),
        ({"host": "0.0.0.0", "port": "0"}, 1, "no key exists. Make one with `cacp keys"),
        ({"config": "no.toml"}, 2, "the file no.toml does not exist"),
    ],
)
def test_what_it_cannot_start_with_is_one_line(
    tmp_path: Path, variables: dict[str, str], status: int, said: str
) -> None:
    done = process("serve", **{"db": str(tmp_path / "n.db"), **variables})
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_line_and_makes_no_database(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = process("serve", port=str(port), db=str(tmp_path / "n.db"))
    assert done.returncode == 1
    assert done.stderr == (
        f"cacp: Can't listen on 127.0.0.1:{port}: another process listens there\n"
    )
    assert not (tmp_path / "n.db").exists()


@pytest.mark.sqlite
def test_what_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "n.db").write_text("not a database, by far " * 100)
    done = process("serve", port="0", db=str(tmp_path / "n.db"))
    assert done.returncode == 1
    assert "restore it from a backup" in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_win_over_variables(tmp_path: Path, node: Node) -> None:
    done = process("serve", "--port", str(node.port), port="0", db=str(tmp_path / "n.db"))
    assert f"Can't listen on 127.0.0.1:{node.port}" in done.stderr


def _read_until(terminal: int, wanted: str) -> str:
    text, deadline = "", time.monotonic() + PATIENCE
    while wanted not in text:
        assert time.monotonic() < deadline, text
        text += os.read(terminal, 4096).decode(errors="replace")
    return text
