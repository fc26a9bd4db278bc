"""`cacp mock`: a real process that serves what a node's project agreed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.run import cacp, environment_of
from tests.proof.provider import CONTRACT
from tests.support.forkserver import ForkedProcess
from tests.support.node import Node
from tests.support.team import Team
from tests.support.waiting import eventually


@contextmanager
def mocking(folder: Path, *words: str, **variables: str) -> Iterator[tuple[str, Path]]:
    """The address of a mock, and the file with what it says on stderr."""
    said, errors = folder / "stdout", folder / "stderr"
    process = ForkedProcess(
        ["mock", *words, "--port", "0"], environment_of(**variables), said, errors
    )
    try:
        eventually(lambda: "Ready at" in said.read_text() or process.poll() is not None)
        assert process.poll() is None, errors.read_text()
        yield said.read_text().rpartition("Ready at ")[2].strip(), errors
    finally:
        process.kill()
        process.wait(30)


def test_a_project_is_mocked_recorded_and_checked(node: Node, team: Team, tmp_path: Path) -> None:
    team.agreed(name="Users", content=CONTRACT)
    team.agreed(name="A model", content={"email": "string"})
    team.proposed(name="Not agreed", content={"method": "GET", "path": "/draft", "response": {}})
    record = tmp_path / "calls.jsonl"
    with mocking(tmp_path, team.project, "--record", str(record), url=node.url) as (url, errors):
        assert httpx.get(f"{url}/draft").status_code == 404
        made = httpx.post(f"{url}/users", json={"email": "ana"})
        assert (made.status_code, made.headers["x-cacp-mock"]) == (201, "1")
        wrong = httpx.post(f"{url}/users", json={"email": 1})
        assert wrong.status_code == 400
        assert httpx.get(f"{url}/users/7", headers={"Prefer": "code=404"}).status_code == 404
        shown = errors.read_text()
    assert "A model (version 1): it has no method and path to serve" in shown
    assert '400 POST /users body/email: 1 is not of type "string"' in shown

    lines = record.read_text().splitlines()
    assert len(lines) == 4
    record.write_text("\n".join([lines[1], lines[3]]) + "\n")
    done = cacp("mock", "check", str(record), team.project, url=node.url)
    assert done.exit_code == 0, done.output
    assert "Users (version 1): passed, 2 cases" in done.stdout

    record.write_text("\n".join(lines))
    done = cacp("mock", "check", str(record), team.project, "--json", url=node.url)
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    outcomes = {outcome["name"]: outcome for outcome in told["contracts"]}
    assert outcomes["Users"]["result"] == "failed"
    assert outcomes["A model"]["result"] == "not_run"
    assert outcomes["Users"]["unused"] == ["DELETE /users/{}", "GET /users"]
    assert [failure["operation"] for failure in told["elsewhere"]] == ["GET /draft"]


def test_a_file_is_mocked(tmp_path: Path) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    with mocking(tmp_path, "serve", "--file", str(contract), "--seed", "3") as (url, _):
        assert httpx.get(f"{url}/users").json()[0]["email"] == "text"
        done = cacp("probe", "--file", str(contract), "--base-url", url)
        assert done.exit_code == 4
        assert "a probe of a mock proves nothing" in done.stdout
        told = cacp("probe", "--file", str(contract), "--base-url", url, "--allow-mock", "--json")
        assert json.loads(told.stdout)["target"] == "mock"


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["serve"], 2, "name a project, or files with --file"),
        (["serve", "Users", "--file", "FILE"], 2, "name a project, or files with --file"),
        (["--file", "FILE"], 4, "no agreed contract has an endpoint with a method and a path"),
        (["check", "/nowhere.jsonl", "--file", "FILE"], 2, "can't read /nowhere.jsonl"),
        (["check", "FILE", "--file", "FILE"], 2, "line 1 is no exchange"),
    ],
)
def test_wrong_usage(tmp_path: Path, words: list[str], status: int, why: str) -> None:
    model = tmp_path / "model.json"
    model.write_text('{"email": "string"}')
    done = cacp("mock", *(str(model) if word == "FILE" else word for word in words))
    assert done.exit_code == status, done.output
    assert why in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    with mocking(tmp_path, "--file", str(contract)) as (url, _):
        port = url.rpartition(":")[2]
        done = cacp("mock", "--file", str(contract), "--port", port)
    assert done.exit_code == 2
    assert f"can't listen at 127.0.0.1:{port}" in done.stderr


def test_a_recording_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    done = cacp("mock", "--file", str(contract), "--port", "0", "--record", str(tmp_path))
    assert done.exit_code == 2
    assert f"can't write {tmp_path}: Is a directory" in done.stderr
    assert "listen" not in done.stderr


def test_nothing_controls_the_terminal(tmp_path: Path) -> None:
    contract = tmp_path / "evil.json"
    path = "/users\u202e\x1b[2J\x07"
    contract.write_text(json.dumps({"method": "GET", "path": path, "response": {}}))
    with mocking(tmp_path, "--file", str(contract)):
        assert "GET     http://127.0.0.1:" in (tmp_path / "stdout").read_text()
        assert (tmp_path / "stdout").read_text().replace("\n", "").isprintable()
    users = tmp_path / "users.json"
    users.write_text(json.dumps(CONTRACT))
    record = tmp_path / "calls.jsonl"
    entry = {
        "at": "2026-03-01T10:00:00+00:00",
        "contract": None,
        "request": {"method": "GET\x1b[2J\u202e", "path": path, "query": "", "headers": []},
        "response": {"status": 404, "headers": []},
    }
    record.write_text(json.dumps(entry) + "\n")
    done = cacp("mock", "check", str(record), "--file", str(users))
    assert done.exit_code == 1
    assert "✗ GET /users" in done.stdout
    assert done.stdout.replace("\n", "").isprintable()


def test_a_contract_that_is_negotiated_again_is_served_as_it_was_agreed(
    node: Node, team: Team, tmp_path: Path
) -> None:
    id = team.agreed(name="Users", content=CONTRACT)
    team.backend("contract/respond", contractId=id, action="request_change", comment="Less.")
    team.backend(
        "contract/update", contractId=id, content={**CONTRACT, "paths": {}}, changeNotes="Less."
    )
    record = tmp_path / "calls.jsonl"
    with mocking(tmp_path, team.project, "--record", str(record), url=node.url) as (url, errors):
        assert httpx.post(f"{url}/users", json={"email": "ana"}).status_code == 201
        assert "Users is being negotiated again (version 1 was agreed)" in errors.read_text()
    done = cacp("mock", "check", str(record), team.project, url=node.url)
    assert (done.exit_code, "Users (version 1): passed" in done.stdout) == (0, True)
    assert (
        "  used 1 of 4 operations; not GET /users/{}, DELETE /users/{}, GET /users" in done.stdout
    )
    assert "is being negotiated again (version 1 was agreed)" in done.stderr
