"""`cacp thread` in this process, and a manifest of two tasks."""

from pathlib import Path

from typer.testing import CliRunner, Result

from cli.thread import app
from tests.threader.projects import Bench


def invoke(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def bench_of(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}])
