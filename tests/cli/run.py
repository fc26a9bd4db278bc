"""The `cacp` command as tests run it: in this process, or as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from cli.main import app

ROOT = Path(__file__).parents[2]


def cacp(*args: str, stdin: str | bytes = "", **variables: str) -> Result:
    """A command in this process. `variables` are CACP_* without their prefix."""
    environment = {f"CACP_{name.upper()}": value for name, value in variables.items()}
    return CliRunner().invoke(app, args, input=stdin, env={"COLUMNS": "160", **environment})


def process(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command as a shell runs it."""
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *args],
        env=environment_of(**variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )


def environment_of(**variables: str) -> dict[str, str]:
    """This environment without its CACP_* variables, with those given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CACP_")}
    return clean | {f"CACP_{name.upper()}": value for name, value in variables.items()}
