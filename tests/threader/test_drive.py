"""A run under signals, to its report."""

import json
import os
from pathlib import Path

import pytest

from tests.threader.projects import Bench, result_block
from threader.drive import drive
from threader.errors import ThreaderError
from threader.load import load_project
from threader.session import resume_run


def test_exit_codes_and_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    code, summary = drive(bench.open(), plain=True, compat=None, as_json=False)
    assert (code, summary["tasks"]) == (0, {"DONE": 2})
    assert Path(summary["report"]).exists()
    assert "COMPLETED: 2 DONE" in capsys.readouterr().out
    other = Bench(tmp_path / "q", ["A"])
    other.answer("A", result_block("A", status="BLOCKED"))
    code, summary = drive(other.open(), plain=False, compat=None, as_json=True)
    assert (code, summary["run_status"]) == (1, "COMPLETED")
    events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert events == ["window", "started", "settled", "verdict", "ended"]


def test_a_folder_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    bench.script("A", f"rm -r {bench.state_dir}/tasks")
    with pytest.raises(ThreaderError, match="No such file or directory; fix that"):
        drive(bench.open(), plain=True, compat=None, as_json=False)
    opened, _ = resume_run(load_project(bench.save()))
    (bench.root / "answers" / "A.sh").unlink()
    assert drive(opened, plain=True, compat=None, as_json=False)[0] == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_outlives_the_reader_of_its_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    as_json: bool,
) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        code, summary = drive(bench.open(), plain=True, compat=None, as_json=as_json)
    assert (code, summary["tasks"]) == (0, {"DONE": 2})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("the output can no longer be written (Broken pipe)")


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    with pytest.raises(ThreaderError, match="xml should be one of"):
        drive(bench.open(), plain=True, compat="xml", as_json=False)
