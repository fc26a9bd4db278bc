"""The `cacp` command as tests run it: in this process, or as a process of its own."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.testing import CliRunner, Result

from cli.main import app
from tests.support.forkserver import ForkedProcess
from tests.support.located import ON_POSTGRESQL, location_of

ROOT = Path(__file__).parents[2]


def cacp(*args: str, stdin: str | bytes = "", **variables: str) -> Result:
    """A command in this process. `variables` are CACP_* without their prefix."""
    environment = {"COLUMNS": "160", **named(**variables)}
    return CliRunner().invoke(app, words_of(args), input=stdin, env=environment)


def named(**variables: str) -> dict[str, str]:
    """Variables by their whole names."""
    return {f"CACP_{name.upper()}": value for name, value in located(variables).items()}


def located(variables: dict[str, str]) -> dict[str, str]:
    """The variables, in a run on PostgreSQL with the database that takes the place of a file."""
    if not ON_POSTGRESQL or "db" not in variables or "database_url" in variables:
        return variables
    return variables | {"database_url": str(location_of(variables["db"]))}


def words_of(args: Sequence[str]) -> list[str]:
    """The words of a command, in a run on PostgreSQL with the database that takes the place of the
    file after --db."""
    before = ("", *args)
    return [
        str(location_of(word)) if ON_POSTGRESQL and option == "--db" and "://" not in word else word
        for option, word in zip(before, args, strict=False)
    ]


def process(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    with TemporaryDirectory() as folder:
        said, errors = Path(folder, "stdout"), Path(folder, "stderr")
        running = ForkedProcess(words_of(args), environment_of(**variables), said, errors)
        status = running.wait(30)
        return subprocess.CompletedProcess(args, status, said.read_text(), errors.read_text())


def on_terminal(*args: str, columns: int = 80, **variables: str) -> str:
    """What a command shows on a terminal of `columns` columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**environment_of(**variables), "TERM": "dumb"}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        [sys.executable, "-m", "cli.main", *words_of(args)],
        env=environment,
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        shown = b""
        # Linux reports the end of a terminal as an error.
        with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as screen:
            while chunk := screen.read(4096):
                shown += chunk
    return shown.decode().replace("\r\n", "\n")


def environment_of(**variables: str) -> dict[str, str]:
    """This environment without its CACP_* variables, with those given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CACP_")}
    return clean | named(**variables)
