"""`cacp comply` as a user meets it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from comply.files import suites
from tests.cli.run import ROOT, cacp, environment_of
from tests.support.node import Node
from tests.support.waiting import PATIENCE

TEST = """{
  "title": "Answers",
  "severity": "required",
  "steps": [{ "expect": { "messages": [{ "response": { "id": "(" } }] } }]
}"""


def test_lint_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsont"
    file.write_text(TEST)
    done = cacp("comply", "lint", str(file))
    assert done.exit_code == 1
    assert (
        f"{file}:4: error: steps.0.expect.messages.0.response.id: ( is not an ECMAScript regex"
        in done.stdout
    )
    assert "1 files, 3 problems" in done.stderr
    file.write_text(TEST.replace('"("', '"1"'))
    assert cacp("comply", "lint", str(file)).exit_code == 0
    assert cacp("comply", "lint", str(file), "--strict").exit_code == 1
    warned = json.loads(cacp("comply", "lint", str(file), "--json").stdout)
    assert {one["level"] for one in warned} == {"warning"}
    file.write_bytes(b"\xff")
    done = cacp("comply", "lint", str(file))
    assert (done.exit_code, done.stdout) == (
        1,
        f"{file}:1: error: can't be read: it is not UTF-8\n",
    )


def test_what_is_not_there_is_wrong_usage() -> None:
    done = cacp("comply", "lint", "nope")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("cacp: no suite, test or file nope")


def test_a_file_that_is_no_test_is_an_error_of_its_own(node: Node, tmp_path: Path) -> None:
    good = TEST.replace('"title"', '"transport": "http", "title"').replace('"("', '"."')
    for name, text in (
        ("a", TEST),
        ("b", good.replace('"steps"', '"preconditions": [{"os": "x"}], "steps"')),
        (
            "c",
            good.replace(
                '"steps"', '"sandbox": {"files": [{"path": "x", "base64": "?"}]}, "steps"'
            ),
        ),
        ("d", good.replace('"expect"', '"forbid": {"methods": []}}, {"expect"')),
    ):
        (tmp_path / f"{name}.jsont").write_text(text)
    done = cacp("comply", "run", str(tmp_path), "--url", node.url)
    assert done.exit_code == 3
    suite = tmp_path.name
    said = [line.partition(" ")[2] for line in done.stderr.splitlines() if "/4 " in line]
    assert [line[: line.index(suite)].strip() for line in sorted(said)] == [
        "ERROR",
        "ERROR",
        "FAIL",
        "NA",
    ]
    assert "is not base64" in done.stdout
    assert "asks for os, which this runner does not know" in done.stdout


def test_list_and_explain() -> None:
    listed = cacp("comply", "list", "json-rpc-2.0").stdout
    assert "json-rpc-2.0/error.parse  required  http  Parse error" in listed
    tests = json.loads(cacp("comply", "list", "--json").stdout)
    assert all(test["docs"] and test["description"] for test in tests)
    explained = cacp("comply", "explain", "contract.agree").stdout
    assert "Clause: cacp-2.0.md#cacpcontractrespond" in explained
    whole = json.loads(cacp("comply", "explain", "contract.agree", "--json").stdout)
    assert whole["test"] == "cacp-2.0/contract.agree"
    assert whole["steps"][0]["send"]["method"] == "cacp/project/create"


def test_every_shipped_test_is_clean() -> None:
    done = cacp("comply", "lint", *suites(), "--strict")
    assert (done.exit_code, done.stdout) == (0, "")


def test_run_reports_in_every_form(node: Node, frontend_key: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.xml", "r.html", "r.svg")]
    forms = zip(("--json", "--junit", "--html", "--badge"), map(str, files), strict=True)
    options = [word for pair in forms for word in pair]
    sync_key = node.key("aid://example.com/frontend@1.0.0", "frontend-app", "peer")
    who = ["--url", node.url, "--key2", frontend_key, "--sync-key", sync_key]
    done = cacp("comply", "run", "cacp-2.0", "json-rpc-2.0", *who, *options)
    assert done.exit_code == 4, done.stdout
    assert done.stderr.endswith(
        "cacp: 12 of 99 required tests not tested\n"
        "cacp: coverage: 116 of 128 tests applied (90 %)\n"
    )
    assert "| Contract: agree " in done.stdout
    assert "PASS cacp-2.0/contract.agree" in done.stderr
    assert all(file.stat().st_size > 300 for file in files)
    report = json.loads(files[0].read_text())["subjects"][0]
    left = {one["reason"] for one in report["tests"] if one["verdict"] != "PASS"}
    assert left == {"needs a second node: --peer-url"}


def test_without_another_key_its_tests_are_not_applicable(node: Node) -> None:
    done = cacp("comply", "run", "contract.agree", "--url", node.url, "-q")
    assert done.exit_code == 4
    assert "- Not tested: needs another agent: --key2 (1)" in done.stdout
    assert done.stderr == "cacp: nothing was tested\n"


def test_a_baseline_takes_a_known_failure_and_refuses_a_stale_one(
    node: Node, tmp_path: Path
) -> None:
    file, known = tmp_path / "mine.jsont", tmp_path / "known.txt"
    test = TEST.replace('"title"', '"transport": "http", "title"')
    file.write_text(test.replace('"("', '"1"'))
    command = ["comply", "run", str(file), "--url", node.url, "-q"]
    assert cacp(*command, "--write-baseline", str(known)).exit_code == 1
    assert cacp(*command, "--baseline", str(known)).exit_code == 0
    file.write_text(test.replace('"expect": {', '"delayMs": 0, "x": {'))
    done = cacp(*command, "--baseline", str(known))
    assert done.exit_code == 1
    assert "passes: take it out of" in done.stderr
    known.write_text("json-rpc-2.0/no.such\n")
    done = cacp(*command, "--baseline", str(known))
    assert done.exit_code == 1
    assert "json-rpc-2.0/no.such names no test: take it out of" in done.stderr


def test_wrong_usage_and_nothing_that_answers() -> None:
    assert cacp("comply", "run").exit_code == 2
    assert cacp("comply", "run", "nope", "--url", "http://127.0.0.1:9").exit_code == 2
    done = cacp("comply", "run", "json-rpc-2.0", "--url", "http://127.0.0.1:9")
    assert done.exit_code == 3
    assert "- Not tested to the end: nothing answers at http://127.0.0.1:9\n" in done.stdout
    assert done.stderr.endswith("cacp: 127.0.0.1:9: nothing answers at http://127.0.0.1:9\n")


def test_an_agent_of_the_settings_is_tested(tmp_path: Path) -> None:
    settings = tmp_path / "agents.json"
    server = {
        "command": sys.executable,
        "args": [str(ROOT / "tests" / "comply" / "agent.py")],
    }
    settings.write_text(json.dumps({"agent_servers": {"keeper": server}}))
    names = ["required.initialize", "required.error.method-not-found"]
    run = ["comply", "run", *names, "--settings", str(settings), "--agent"]
    done = cacp(*run, "keeper")
    assert done.exit_code == 0, done.output
    assert (
        "## keeper Summary\n\n- Required: 2 of 2 pass\n- Tests: 2 PASS\n"
        "- Coverage: 2 of 2 tests applied (100 %)\n- Time: 2 tests in " in done.stdout
    )
    missing = cacp(*run, "nobody")
    assert missing.exit_code == 2
    assert "no agent nobody in agent_servers; there are keeper" in missing.stderr


def test_a_command_is_tested() -> None:
    done = cacp("comply", "run", "tolerance.case", "--command", f"{sys.executable} -c 0", "-q")
    assert done.exit_code == 1
    assert "[1] wire/tolerance.case: json: expected" in done.stdout
    both = cacp("comply", "run", "--command", "cat", "--url", "http://127.0.0.1:9")
    assert both.exit_code == 2
    assert cacp("comply", "run", "--command", "'").exit_code == 2


@pytest.mark.parametrize("ended", [None, signal.SIGTERM])
def test_record_writes_a_test(ended: signal.Signals | None, tmp_path: Path) -> None:
    """Whether the editor closes the agent's stdin, or ends it, as editors do."""
    settings, file = tmp_path / "agents.json", tmp_path / "hello.jsont"
    server = {
        "command": sys.executable,
        "args": [str(ROOT / "tests" / "comply" / "agent.py")],
    }
    settings.write_text(json.dumps({"agent_servers": {"keeper": server}}))
    frame = '{"jsonrpc": "2.0", "id": 7, "method": "no/such/method"}\n'
    command = [sys.executable, "-m", "cli.main", "comply", "record", str(file)]
    with subprocess.Popen(
        [*command, "--agent", "keeper", "--settings", str(settings)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None
        editor.stdin.write(frame)
        editor.stdin.flush()
        assert json.loads(editor.stdout.readline())["error"]["code"] == -32601
        if ended is None:
            editor.stdin.close()
        else:
            editor.send_signal(ended)
        assert editor.wait(PATIENCE) == 0
    steps = json.loads(file.read_text())["steps"]
    assert steps[0]["send"]["method"] == "no/such/method"
    assert steps[1]["expect"]["messages"][0]["response"]["error"]["code"] == -32601


def test_an_interrupted_run_removes_what_it_has_made(node: Node, tmp_path: Path) -> None:
    """And says what it could not remove: nobody may delete a peer's registration."""
    before = node.call("cacp/project/list", includeArchived=True)["total"]
    keys = {
        "key": node.key("aid://example.com/comply-first@1.0.0", "comply-first"),
        "key2": node.key("aid://example.com/comply-second@1.0.0", "comply-second"),
    }
    words = ["comply", "run", "cacp-2.0", "--url", node.url, "-j", "2"]
    words += ["--repo", "comply-first", "--repo2", "comply-second"]
    with subprocess.Popen(
        [sys.executable, "-m", "cli.main", *words],
        env=environment_of(**keys),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        # Its tests run in the order of their names, and most of them make a project.
        while "context.share-invalid" not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        printed = running.stderr.read()
        assert running.wait(PATIENCE) == 130
    name = node.url.partition("://")[2]
    assert f"cacp: {name}: removed " in printed, printed
    assert "not removed" not in printed
    assert "cacp: coverage: " in printed
    assert node.call("cacp/project/list", includeArchived=True)["total"] == before
    assert node.query("SELECT count(*) FROM project_lifecycle WHERE state = 'deleted'")[0][0] > 3
