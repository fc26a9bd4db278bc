"""The command as a whole: help, version, exit statuses, one-line errors."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import main
from tests.cli.run import ROOT, cacp, environment_of, process
from tests.support.located import prepare
from tests.support.waiting import PATIENCE


def test_help_lists_every_command_and_the_exit_statuses() -> None:
    shown = cacp("--help").stdout
    for command in (
        *("serve", "demo", "status", "projects", "contracts", "show", "watch", "call", "openrpc"),
        "mcp",
        *("discover", "register", "known", "wire", "doctor", "backup", "export", "keys", "tokens"),
    ):
        assert f" {command} " in shown
    assert "3 the node can't be reached" in shown


def test_a_command_is_read_without_the_others() -> None:
    """Each that there is: its help is that among all."""
    whole: Any = main.command()
    for name, among_all in whole.commands.items():
        part: Any = main.command(name)
        assert [*part.commands] == [name]
        alone = part.commands[name]
        assert (alone.help, alone.epilog) == (among_all.help, among_all.epilog)
        assert [each.opts for each in alone.params] == [each.opts for each in among_all.params]
    bogus: Any = main.command("bogus")
    assert bogus.commands.keys() == whole.commands.keys()


def test_version() -> None:
    assert cacp("--version").stdout.startswith("cacp 0.")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show"], "cacp show: Missing argument 'ID'; see cacp show --help\n"),
        (["bogus"], "cacp: No such command 'bogus'; see cacp --help\n"),
        (["serve", "--port", "x"], "cacp serve: Invalid value for '--port'"),
        (["call", "x", "y"], "cacp call: Invalid value for PARAMS: y: should be name=text"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(args: list[str], said: str) -> None:
    done = process(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_a_node_that_is_not_there_is_one_line_and_status_3() -> None:
    done = process("status", url="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "cacp: no node answers at http://127.0.0.1:9; `cacp serve` starts one\n"


HEAVY = {"pydantic_settings", "starlette", "uvicorn", "jwt", "structlog", "jinja2", "jsonschema"}
HEAVY |= {"schemas.base", "server.methods", "server.settings", "threader"}
STORE = {"server.store.sql", "aiosql"}
HTTP = {"httpx"}


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("words", "forbidden"),
    [
        (["--help"], {*HEAVY, *STORE, *HTTP, "server", "pydantic", "orjson"}),
        (["call", "cacp/project/list", "--help"], {*HEAVY, *STORE, *HTTP, "server"}),
        (["next"], {*HEAVY, *STORE}),
        (["call", "cacp/project/list"], {*HEAVY, *STORE}),
        (["keys", "list"], {*HEAVY, *HTTP, "rich"}),
        (["tokens", "list"], {*HEAVY, *HTTP, "rich"}),
        (["clock", "deferred"], {*HEAVY, *HTTP, "rich"}),
        (["clock", "confirm"], {*HEAVY, *HTTP, "rich"}),
        (["backup", "copy.db"], {*HEAVY, *HTTP, "rich"}),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(
    tmp_path: Path, words: list[str], forbidden: set[str]
) -> None:
    """Imports take most of a command's time: this bounds it on any machine."""
    prepare(tmp_path / "node.db")
    code = (
        f"import sys, cli.main; sys.argv = ['cacp', *{words}]\n"
        "try: cli.main.main()\n"
        "except SystemExit: pass\n"
        f"print('imported', *({forbidden} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment_of(db=str(tmp_path / "node.db"), url="http://127.0.0.1:9")
        | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stderr.splitlines()[-1] == "imported"


@pytest.mark.soak
def test_help_answers_in_under_300_ms() -> None:
    best = min(_seconds_of_help() for _ in range(5))
    assert best < 0.3


def _seconds_of_help() -> float:
    """Of the processor: tests that run beside this one take none of them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "cli.main", "--help"],
        env=environment_of(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
