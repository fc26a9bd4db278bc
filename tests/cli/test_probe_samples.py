"""`cacp probe --samples` and `--command`."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.run import cacp


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "user.json"
    path.write_text('{"email": "string", "age": "integer?"}')
    return str(path)


def test_samples_in_a_folder(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "a.json").write_text('{"email": "a"}')
    done = cacp("probe", "--file", model, "--samples", str(folder))
    assert done.exit_code == 0, done.output
    (folder / "b.jsonl").write_text('{"email": 1}\n')
    done = cacp("probe", "--file", model, "--samples", str(folder))
    assert done.exit_code == 1
    assert 'b.jsonl, line 1, at /email: 1 is not of type "string"' in done.stdout


def test_no_samples_prove_nothing(model: str, tmp_path: Path) -> None:
    assert cacp("probe", "--file", model, "--samples", str(tmp_path / "no")).exit_code == 2
    (tmp_path / "empty").mkdir()
    assert cacp("probe", "--file", model, "--samples", str(tmp_path / "empty")).exit_code == 4


def test_what_a_provider_prints(model: str) -> None:
    printed = 'echo \'{"email": "a"}\'; echo \'{"email": "b", "age": 3}\''
    done = cacp("probe", "--file", model, "--command", printed, "--json")
    assert json.loads(done.stdout)["cases"] == 2
    assert done.exit_code == 0
    failed = cacp("probe", "--file", model, "--command", f"{printed}; echo boom >&2; exit 3")
    assert failed.exit_code == 1
    assert "It ended with status 3: boom" in failed.stdout


def test_what_a_consumer_reads(model: str, tmp_path: Path) -> None:
    reader = tmp_path / "reader.py"
    reader.write_text(
        "import json, sys\nfor line in sys.stdin:\n    assert 'age' in json.loads(line)\n"
    )
    command = f"{sys.executable} {reader}"
    words = ("--side", "consumer", "--cases", "20", "--seed", "1")
    done = cacp("probe", "--file", model, "--command", command, *words)
    assert done.exit_code == 1
    assert "✗ model: message refused" in done.stdout
    assert f"| {command}" in done.stdout
    reader.write_text("import sys\nsys.stdin.read()\n")
    assert cacp("probe", "--file", model, "--command", command, *words).exit_code == 0


def test_a_command_must_end(model: str) -> None:
    done = cacp("probe", "--file", model, "--command", "sleep 30", "--time-limit", "1")
    assert done.exit_code == 4
    assert "--command did not end within 1 s" in done.stderr
