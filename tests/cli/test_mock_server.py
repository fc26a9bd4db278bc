"""A mock that serves while a command runs. What it serves otherwise is in test_mock.py."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.run import cacp, environment_of
from tests.proof.provider import CONTRACT
from tests.support.forkserver import ForkedProcess
from tests.support.waiting import eventually, is_running

CALLS = "import httpx, os; httpx.post(os.environ['CACP_MOCK_URL'] + '/users', json={})"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        (CALLS.replace("{}", "{'email': 'ana'}"), 0, "1 requests, each as agreed"),
        (CALLS, 1, "1 of 1 requests broke their contract"),
        (CALLS.replace("json={}", "content=b'x' * 11_000_000"), 1, "1 of 1 requests broke"),
        ("print(7)", 4, "called nothing at http://127.0.0.1:"),
        ("exit(3)", 3, "--run ended with status 3"),
        ("import os; os.kill(os.getpid(), 9)", 137, "--run ended with status 137"),
    ],
)
def test_a_command_is_run_against_a_mock_of_its_own(
    tmp_path: Path, command: str, status: int, told: str
) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    words = ["--file", str(contract), "--port", "0"]
    done = cacp("mock", *words, "--run", shlex.join([sys.executable, "-c", command]))
    assert done.exit_code == status, done.output
    assert told in done.stderr


def test_what_a_command_has_started_ends_with_the_mock(tmp_path: Path) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    told = tmp_path / "pid"
    command = f"sleep 300 & echo $! > {told}.new; mv {told}.new {told}; wait; echo done"
    process = ForkedProcess(
        ["mock", "--file", str(contract), "--port", "0", "--run", command],
        environment_of(),
        tmp_path / "stdout",
        tmp_path / "stderr",
    )
    try:
        eventually(told.exists)
        process.terminate()
        process.wait(30)
    finally:
        process.kill()
    eventually(lambda: not is_running(int(told.read_text())))
    assert "done" not in (tmp_path / "stdout").read_text()


def test_nothing_that_is_told_has_a_credential(tmp_path: Path) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    call = CALLS.replace("/users'", "/users?api_key=s3cret'")
    done = cacp(
        "mock", "--file", str(contract), "--port", "0", "--run",
        shlex.join([sys.executable, "-c", call]),
    )  # fmt: skip
    assert "POST /users?api_key=[hidden]" in done.stderr
