"""`cacp wire` as its users call it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.wire import app

REPORT = "STATUS:ok\nFILES_CREATED:a.py,b.py\nTESTS:pass:12\nX_1:é\n"


def wire(*args: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(app, args, input=stdin)


def test_parse_prints_the_canonical_text() -> None:
    done = wire("parse", "-", stdin=f"Done!\n```\n{REPORT.lower().replace('x_1', 'X_1')}```\n")
    assert (done.exit_code, done.stdout, done.stderr) == (0, REPORT, "")


def test_parse_reads_a_file_and_prints_json(tmp_path: Path) -> None:
    text = tmp_path / "answer.txt"
    text.write_text(REPORT, encoding="utf-8")
    done = wire("parse", str(text), "--json")
    fields = json.loads(done.stdout)
    assert done.exit_code == 0
    assert fields["status"] == "ok"
    assert fields["files_created"] == ["a.py", "b.py"]
    assert fields["tests"] == {"outcome": "pass", "count": 12}
    assert fields["x_1"] == "é"


def test_parse_warns_of_what_is_oddly_written() -> None:
    text = "STATUS: ok (all good)\nLEARNED:one\ntwo\nTESTS:fail\nWARNINGS: one is mine\n"
    done = wire("parse", "-", stdin=text)
    assert done.exit_code == 0
    assert done.stdout == "STATUS:ok\nTESTS:fail\nLEARNED:one two\nWARNINGS:one is mine\n"
    assert done.stderr.splitlines() == [
        "cacp wire: warning: line 1: STATUS 'ok (all good)' is read as ok",
        "cacp wire: warning: line 2: LEARNED continues to line 3; it was made one line",
        "cacp wire: warning: line 4: TESTS says fail, so the work is not done, though STATUS is ok",
    ]
    shown = wire("parse", "-", "--json", stdin=text)
    fields = json.loads(shown.stdout)
    assert shown.stderr == ""
    assert fields["warnings"][0] == {
        "line": 1,
        "field": "STATUS",
        "message": "'ok (all good)' is read as ok",
    }
    assert fields["warnings"][3] == {"line": None, "field": "WARNINGS", "message": "one is mine"}
    assert wire("emit", "-", stdin=shown.stdout).stdout == done.stdout


def test_parse_says_what_no_canonical_line_can_carry() -> None:
    text = "STATUS:ok\nFILES_CREATED: `a,b.py`\n"
    done = wire("parse", "-", stdin=text)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--json can" in done.stderr
    assert json.loads(wire("parse", "-", "--json", stdin=text).stdout)["files_created"] == [
        "a,b.py"
    ]


def test_parse_reads_a_dispatch() -> None:
    done = wire("parse", "-", "--json", stdin="TASK: do it\n")
    assert json.loads(done.stdout)["task"] == "do it"


def test_parse_survives_bytes_that_are_no_text() -> None:
    done = wire("parse", "-", stdin=b"\xff\xfe\x00\nSTATUS:ok\n")
    assert (done.exit_code, done.stdout) == (0, "STATUS:ok\n")


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("STATUS:okay", 1, "cacp wire: line 1: STATUS is 'okay'; allowed: ok, fail,"),
        ("All done.", 3, "cacp wire: the text has neither a report (STATUS:…) nor a dispatch"),
    ],
)
def test_parse_says_in_one_line_what_is_wrong(text: str, status: int, said: str) -> None:
    done = wire("parse", "-", stdin=text)
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = wire("parse", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert done.stderr.endswith("none: No such file or directory\n")


def test_emit_prints_what_parse_reads() -> None:
    fields = wire("parse", "-", "--json", stdin=REPORT).stdout
    assert wire("emit", "-", stdin=fields).stdout == REPORT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"status": "ok"', "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ("9" * 5000, "not JSON: "),
        ('["ok"]', "not a JSON object"),
        ("{}", "STATUS is missing"),
        ('{"status": "ok", "build": 3}', "BUILD is 3; allowed: pass, fail, skip"),
        ('{"status": "ok", "files_deleted": ["a,b"]}', "FILES_DELETED has 'a,b'; allowed: a list"),
        ('{"status": "ok", "error": "a\\nb"}', "ERROR is 'a\\nb'; allowed: one line of text"),
    ],
)
def test_emit_refuses_what_a_line_cannot_carry(text: str, said: str) -> None:
    done = wire("emit", "-", stdin=text)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cacp wire: {said}")
    assert done.stderr.count("\n") == 1


def test_the_parser_accepts_what_the_prompt_teaches() -> None:
    taught = wire("prompt").stdout
    done = wire("parse", "-", stdin=taught)
    assert done.exit_code == 0
    assert done.stdout in taught


@pytest.mark.parametrize("command", ["parse", "emit", "prompt"])
def test_help_teaches_with_an_example(command: str) -> None:
    done = wire(command, "--help")
    assert done.exit_code == 0
    assert "Example:" in done.stdout
