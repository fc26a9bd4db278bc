"""`cacp comply run`: nothing that is finished is lost, and what was not tested is said."""

import json
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cli.comply_run import Progress, Reports, write_baseline
from comply.result import Subject, Verdict
from tests.cli.run import ROOT, cacp, environment_of
from tests.comply.results import result, subjects
from tests.support.forkserver import ForkedProcess
from tests.support.waiting import PATIENCE, eventually

AGENTS = ROOT / "tests" / "comply"
FORMS = {"--json": "r.json", "--junit": "r.xml", "--html": "r.html", "--badge": "r.svg"}


def settings(folder: Path, **agents: list[str]) -> list[str]:
    """The options that name these agents: an argument list of Python each, or a command."""
    servers = {
        name: {"command": args[0] if len(args) == 1 else sys.executable, "args": args}
        for name, args in agents.items()
    }
    file = folder / "agents.json"
    file.write_text(json.dumps({"agent_servers": servers}))
    return ["--settings", str(file), *(word for name in agents for word in ("--agent", name))]


def made(folder: Path, name: str, *steps: Any) -> str:
    file = folder / f"{name}.jsont"
    file.write_text(json.dumps({"title": name, "severity": "required", "steps": steps}))
    return str(file)


def reports(folder: Path) -> list[str]:
    return [word for form, name in FORMS.items() for word in (form, str(folder / name))]


PROMPT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "session/prompt",
    "params": {"sessionId": "${sessionId}", "prompt": [{"type": "text", "text": "Hello"}]},
}
TURN: tuple[dict[str, Any], ...] = (
    *({"newSession": {}}, {"send": PROMPT}),
    {"expect": {"timeoutMs": 600_000, "messages": [{"response": {"id": 1}}]}},
)


def test_each_agent_is_told_of_whatever_the_others_do(tmp_path: Path) -> None:
    """One is missing, one dies with words on stderr, one floods, one wants a login, one is good."""
    unruly = str(AGENTS / "unruly.py")
    agents = settings(
        tmp_path,
        missing=["/no/such/agent"],
        dying=[unruly, "dying"],
        flooding=[unruly, "flood"],
        locked=[unruly, "locked"],
        good=[str(AGENTS / "agent.py"), ""],
    )
    done = cacp("comply", "run", made(tmp_path, "turn", *TURN), *agents, *reports(tmp_path))
    assert done.exit_code == 3, done.output
    row = next(line for line in done.stdout.splitlines() if line.startswith("| turn"))
    assert [cell.split()[0] for cell in row.split("|")[2:-1]] == [
        *("NA", "FAIL", "FAIL", "NA", "PASS")
    ]
    for said in (
        "- Not tested to the end: can't start /no/such/agent: No such file or directory",
        "the agent exited with status 1; its stderr ended: Loading / no such model",
        "the agent wrote more than 20000 lines",
        "needs authentication: log in first",
    ):
        assert said in done.stdout
    assert "cacp: missing: can't start /no/such/agent" in done.stderr
    assert "missing was not tested to the end: can't start" in done.stderr
    assert "good 1/1 PASS" in done.stderr
    told = json.loads((tmp_path / "r.json").read_text())["subjects"]
    assert told[0]["problem"].startswith("can't start /no/such/agent")
    assert told[1]["tests"][0]["stderr"] == "Loading\nno such model\n"
    suites = {suite.attrib["name"]: suite for suite in ET.parse(tmp_path / "r.xml").getroot()}
    assert suites["missing"].attrib["errors"] == "1"
    assert suites["dying"].findtext("testcase/system-err") == "Loading\nno such model\n"
    assert "no such model" in (tmp_path / "r.html").read_text()
    assert "compliance: 1/5, 2 not tested" in (tmp_path / "r.svg").read_text()


@contextmanager
def underway(folder: Path) -> Iterator[ForkedProcess]:
    """A run of which the first test is finished, and the second never ends."""
    tests = [made(folder, "a", *TURN), made(folder, "b", {"newSession": {}}, {"delayMs": 600_000})]
    agents = settings(folder, good=[str(AGENTS / "agent.py"), ""])
    command = ["comply", "run", *tests, *agents, *reports(folder)]
    said, errors = folder / "stdout", folder / "stderr"
    running = ForkedProcess(command, environment_of(), said, errors)
    try:
        eventually(lambda: (folder / "r.svg").exists())
        yield running
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait(PATIENCE)


def verdicts(folder: Path) -> list[tuple[str, str]]:
    (subject,) = json.loads((folder / "r.json").read_text())["subjects"]
    return [(test["verdict"], test.get("reason", "")) for test in subject["tests"]]


def test_what_is_finished_is_on_disk_when_the_run_is_killed(tmp_path: Path) -> None:
    with underway(tmp_path) as running:
        running.send_signal(signal.SIGKILL)
        running.wait(PATIENCE)
    assert verdicts(tmp_path) == [("PASS", ""), ("NA", "not run")]
    assert "compliance: 1/2, 1 not tested" in (tmp_path / "r.svg").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_reports_what_is_finished(
    number: signal.Signals, tmp_path: Path
) -> None:
    with underway(tmp_path) as running:
        running.send_signal(number)
        assert running.wait(PATIENCE) == 128 + number
    ended = f"the run was ended by {number.name}"
    assert verdicts(tmp_path) == [("PASS", ""), ("NA", f"not run: {ended}")]
    assert f"- Not tested to the end: {ended}" in (tmp_path / "stdout").read_text()
    assert f"cacp: good: {ended}" in (tmp_path / "stderr").read_text()


def test_a_report_that_could_not_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    options = [*settings(tmp_path, good=["/no/such"]), "--junit", str(tmp_path / "none" / "r.xml")]
    done = cacp("comply", "run", made(tmp_path, "turn", *TURN), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith("none/r.xml: No such file or directory\n")
    folder = cacp("comply", "run", *options[:-2], "--html", str(tmp_path))
    assert folder.exit_code == 2
    assert folder.stderr.endswith(": it is a folder\n")


def test_a_report_that_cant_be_written_keeps_no_other_from_being_written(tmp_path: Path) -> None:
    written = Reports(frozenset(), tmp_path / "none" / "r.json", tmp_path / "r.xml")
    (problem,) = written.write(subjects())
    assert problem.endswith("none/r.json: No such file or directory")
    assert (tmp_path / "r.xml").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["r.xml"]


def test_a_report_takes_the_place_of_what_is_there_and_of_no_device(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    assert Reports(frozenset(), link, Path("/dev/null")).write(subjects()) == []
    assert link.is_symlink()
    assert json.loads(real.read_text())["version"] == 1
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_reports_take_a_small_part_of_the_time(tmp_path: Path) -> None:
    """The clock goes a second with each look: writing takes one, so twenty pass before the
    next."""
    seconds = iter(range(1000))
    written = Reports(frozenset(), tmp_path / "r.json", clock=lambda: next(seconds))
    times = 0
    for _ in range(100):
        (tmp_path / "r.json").unlink(missing_ok=True)
        written.keep(subjects())
        times += (tmp_path / "r.json").exists()
    assert 4 <= times <= 6


def test_no_baseline_is_made_of_what_was_not_run(tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("suite/a\n")
    write_baseline(known, [Subject("x", {}, [], problem="the run was ended by SIGINT")])
    assert known.read_text() == "suite/a\n"
    write_baseline(known, [Subject("x", {}, [])])
    assert known.read_text() == ""


def test_progress_goes_on_when_nobody_listens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = []

    def closed(line: str, err: bool) -> None:
        said.append(line)
        raise BrokenPipeError

    monkeypatch.setattr("cli.comply_run.typer.echo", closed)
    subject = Subject("x", {}, [result("a", Verdict.PASS)])
    Progress(Reports(frozenset()), quiet=False)(subject, subject.results[0])
    assert said


def test_36_of_39_not_tested_is_no_success(tmp_path: Path) -> None:
    """An agent that wants a login: all but three tests are NA."""
    easy = {"send": {"jsonrpc": "2.0", "id": 5, "method": "initialize"}}
    tests = [made(tmp_path, f"easy{number}", easy) for number in range(3)]
    tests += [made(tmp_path, f"turn{number:02}", *TURN) for number in range(36)]
    agents = settings(tmp_path, closed=[str(AGENTS / "unruly.py"), "closed"])
    run = ["comply", "run", *tests, *agents, "-q"]
    done = cacp(*run, *reports(tmp_path), "--write-baseline", str(tmp_path / "known"))
    assert done.exit_code == 4
    assert done.stderr == (
        "cacp: 36 of 39 required tests not tested\n"
        "cacp: coverage: 3 of 39 tests applied (7 %), which proves little: --min-coverage is 33 %\n"
    )
    assert "- Required: 3 of 39 pass, 36 not tested" in done.stdout
    badge = (tmp_path / "r.svg").read_text()
    assert "compliance: 3/39, 36 not tested" in badge
    assert "#8a5a00" in badge
    assert ET.parse(tmp_path / "r.xml").getroot()[0].attrib["skipped"] == "36"
    assert cacp(*run, "--baseline", str(tmp_path / "known")).exit_code == 0
