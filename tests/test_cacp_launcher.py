"""The launcher: `cacp` is found whatever the caller's folder and PYTHONPATH hold."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cacp_launcher import command, ordered
from comply import mcp_server
from comply.mcp_report import McpReport
from tests.architecture.source import OURS, ROOT, modules
from tests.cli.run import environment_of
from tests.support.node import free_port, free_ports
from tests.support.waiting import PATIENCE, eventually

SCRIPT = str(Path(sys.executable).with_name("cacp"))
DEPENDENCIES = ("acp", "mcp", "pydantic", "typer", "uvicorn")
"""A repository may have folders of these names too."""
NOBODY = "http://127.0.0.1:9"

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Somebody's repository, with packages that bear the names of ours and of what we use."""
    for name in (*OURS, *DEPENDENCIES):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(f"raise ImportError('the repository has a {name}/')")
    return tmp_path


def variables(**given: str) -> dict[str, str]:
    return environment_of(**given) | {"PYTHONPATH": "."}


def run(words: list[str], folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=variables(url=NOBODY),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize(
    ("words", "stdin", "status"),
    [
        (["--version"], "", 0),
        (["hook", "claude", "Stop"], "{}", 0),
        (["hook", "claude", "--install", "--print"], "", 0),
        (["wire", "parse", "-"], "STATUS:ok", 0),
        (["openrpc"], "", 0),
        (["status"], "", 3),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_command_starts(repository: Path, words: list[str], stdin: str, status: int) -> None:
    starts([SCRIPT, *words], repository, stdin, status)


@pytest.mark.parametrize(
    "start", [[sys.executable, "-m", "cacp_launcher"], command()], ids=["module", "child"]
)
def test_a_command_starts_in_each_other_way(repository: Path, start: list[str]) -> None:
    """The launcher orders the path before it looks at the words, so one command speaks for all."""
    starts([*start, "status"], repository, "", 3)


def starts(words: list[str], folder: Path, stdin: str, status: int) -> None:
    done = run(words, folder, stdin)
    assert "Traceback" not in done.stderr
    assert done.returncode == status, done.stderr


def test_the_demo_starts_its_node(repository: Path) -> None:
    done = run([SCRIPT, "demo"], repository)
    assert done.returncode == 0, done.stderr


def test_a_node_serves(repository: Path) -> None:
    port = free_port()
    words = [SCRIPT, "serve", "--attached", "--port", str(port), "--db", "node.db"]
    with subprocess.Popen(
        words, cwd=repository, env=variables(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as node:
        ask = [SCRIPT, "status", "--url", f"http://127.0.0.1:{port}"]
        eventually(lambda: run(ask, repository).returncode == 0)
        assert node.stdin is not None
        node.stdin.close()
        assert node.wait(PATIENCE) == 0


def test_a_mesh_starts_its_nodes(repository: Path) -> None:
    port = free_ports(3)
    done = run([SCRIPT, "mesh", "--port", str(port), "--dir", "mesh", "--once"], repository)
    assert done.returncode == 0, done.stderr


def test_the_mcp_server_of_a_node_answers(repository: Path) -> None:
    """`cacp mcp`, as agents start it."""
    done = run([SCRIPT, "mcp"], repository, json.dumps(INITIALIZE) + "\n")
    assert json.loads(done.stdout)["result"]["serverInfo"], done.stderr


def test_the_mcp_server_of_a_compliance_test_starts(repository: Path) -> None:
    """An agent starts it; nobody hears its report here, which ends it with our own error."""
    offer: Any = McpReport(repository, lambda said: None).offer("word")
    done = run([offer["command"], *offer["args"]], repository)
    assert f"KeyError: '{mcp_server.REPORT}'" in done.stderr


def test_nothing_of_ours_is_started_but_by_the_launcher() -> None:
    # The guards of other programs run with nothing on their path but the standard library.
    guards = {ROOT / "cli" / "local_postgresql.py", ROOT / "proof" / "own_processes.py"}
    sources = {ROOT / module for module in modules(*OURS)} - guards
    assert [path for path in sources if "sys.executable" in path.read_text()] == []
    for guard in guards:
        assert '[sys.executable, "-I", "-S", ' in guard.read_text()


# --- the order ----------------------------------------------------------------------------------

STANDARD = str(Path(os.__file__).parent)
ARCHIVE = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
PYTHON = [f"{STANDARD.rpartition('/')[0]}/{ARCHIVE}", STANDARD, f"{STANDARD}/lib-dynload"]
SITE = f"{STANDARD}/site-packages"


def test_the_callers_folders_come_last() -> None:
    path = ["/repo", "/more", *PYTHON, SITE, "/cacp"]
    assert ordered(path, "/cacp", {"/repo", "/more"}) == [
        *PYTHON,
        "/cacp",
        SITE,
        "/repo",
        "/more",
    ]


def test_an_installation_does_not_hide_pythons_own_modules() -> None:
    """A wheel lies beside every other package: one may be a backport of a standard module."""
    assert ordered(["/repo", *PYTHON, SITE], SITE, {"/repo"}) == [*PYTHON, SITE, "/repo"]


def test_an_installation_that_pythonpath_names_is_ours() -> None:
    assert ordered(["/cacp", *PYTHON, SITE], "/cacp", {"/cacp"}) == [*PYTHON, "/cacp", SITE]


def test_an_installation_that_the_path_lacks_is_entered() -> None:
    assert ordered([*PYTHON, SITE], "/cacp", set()) == [*PYTHON, "/cacp", SITE]
