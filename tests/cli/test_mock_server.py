"""A mock that serves while a command runs. What it serves otherwise is in test_mock.py."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.run import cacp
from tests.proof.provider import CONTRACT

CALLS = "import httpx, os; httpx.post(os.environ['CACP_MOCK_URL'] + '/users', json={})"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        (CALLS.replace("{}", "{'email': 'ana'}"), 0, "1 requests, each as agreed"),
        (CALLS, 1, "1 of 1 requests broke their contract"),
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
