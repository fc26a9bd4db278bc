"""`cacp probe`, against real providers and a real node."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run import ROOT, cacp, environment_of
from tests.proof.provider import CONTRACT, running
from tests.support.node import Node
from tests.support.team import Team


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture
def contract(tmp_path: Path) -> str:
    path = tmp_path / "users.json"
    path.write_text(json.dumps(CONTRACT))
    return str(path)


def test_a_provider_passes(provider: str, contract: str) -> None:
    done = cacp("probe", "--file", contract, "--base-url", f"{provider}/honest", "--cases", "40")
    assert done.exit_code == 0, done.output
    assert "users.json: passed, 188 cases" in done.stdout
    assert done.stderr == ""


def test_a_failure_is_shown_as_a_curl_line(provider: str, contract: str) -> None:
    where = ("--base-url", f"{provider}/error_on_edge", "--seed", "3", "--cases", "40")
    done = cacp("probe", "--file", contract, *where)
    assert done.exit_code == 1
    assert "✗ POST /users: server error" in done.stdout
    assert "curl -X POST -H 'Content-Type: application/json'" in done.stdout
    assert "seed 3" in done.stdout
    told = json.loads(cacp("probe", "--file", contract, *where, "--json", "--repo", "api").stdout)
    assert (told["result"], told["repo"], told["seed"]) == ("failed", "api", 3)
    assert told["failures"][0]["rule"] == "server_error"
    assert len(told["outputDigest"]) == 64


def test_a_contract_of_a_node_is_probed(provider: str, node: Node, team: Team) -> None:
    team.agreed(name="Users", content=CONTRACT)
    where = ("--base-url", f"{provider}/honest", "--cases", "10", "--json")
    contract = team.contract(team.agreed(name="Users again", content=CONTRACT))
    done = cacp("probe", contract["contract_id"], *where, url=node.url)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["result"] == "passed"


def test_what_comes_before_may_give_headers(provider: str, contract: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    before = f"touch {ran}; echo 'Authorization: Bearer secret'"
    where = ("--base-url", f"{provider}/wrong_type", "--cases", "10", "--before", before)
    done = cacp("probe", "--file", contract, *where, "--header", "X-Team: blue")
    assert ran.exists()
    assert "secret" not in done.output
    assert "-H 'X-Team: blue' -H \"Authorization: $AUTHORIZATION\"" in done.stdout


@pytest.mark.parametrize(
    ("before", "why"),
    [("exit 7", "--before ended with status 7"), ("echo 'no header: é'", "no header is none")],
)
def test_if_what_comes_before_fails_nothing_is_tried(
    provider: str, contract: str, before: str, why: str
) -> None:
    where = ("--base-url", provider, "--before", before)
    done = cacp("probe", "--file", contract, *where)
    assert done.exit_code == 4
    assert why in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--base-url", "http://h"], "name a contract, or a file with --file"),
        (["Users", "--file", "FILE", "--base-url", "http://h"], "name a contract, or a file"),
        (["--file", "FILE"], "one of --base-url, --samples and --command"),
        (["--file", "FILE", "--base-url", "http://h", "--command", "x"], "one of --base-url"),
        (["--file", "FILE", "--base-url", "h"], "h is no base URL"),
        (["--file", "FILE", "--base-url", "http://h", "--header", "X"], "a header is like"),
        (["--file", "FILE", "--base-url", "http://h", "--value", "X"], "a value is like id=7"),
        (["--file", "/nowhere.json", "--base-url", "http://h"], "can't read /nowhere.json"),
    ],
)
def test_wrong_usage(contract: str, words: list[str], why: str) -> None:
    done = cacp("probe", *(contract if word == "FILE" else word for word in words))
    assert done.exit_code == 2
    assert why in done.stderr


def test_a_content_without_a_digest_is_wrong_usage(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"type": "object", "required": ["\\ud800"]}')
    done = cacp("probe", "--file", str(path), "--base-url", "http://127.0.0.1:9")
    assert (done.exit_code, "is not what a node takes" in done.stderr) == (2, True)


def test_where_nothing_answers_it_could_not_be_tried(contract: str) -> None:
    with running() as address:
        pass
    done = cacp("probe", "--file", contract, "--base-url", address)
    assert done.exit_code == 4
    assert "could not be tried" in done.stdout


def test_the_path_of_the_contracts_server_is_taken_and_said(provider: str, tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    path.write_text(json.dumps(CONTRACT | {"servers": [{"url": "/honest"}]}))
    done = cacp("probe", "--file", str(path), "--base-url", provider, "--cases", "10")
    assert done.exit_code == 0, done.output
    assert f"requests go to {provider}/honest" in done.stderr


def test_a_probe_leaves_nothing_in_its_folder(provider: str, contract: str, tmp_path: Path) -> None:
    """A file there would be a change of the repository that is probed."""
    folder = tmp_path / "repo"
    folder.mkdir()
    words = ("--file", contract, "--base-url", f"{provider}/honest", "--cases", "5")
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "probe", *words],
        cwd=folder,
        env=environment_of() | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "status", "why"),
    [
        ("nope=1", 2, "--value: no operation has a parameter nope; there are id, limit"),
        ("limit=51", 4, "GET /users: --value limit: it doesn't fit its schema: 51 is greater than"),
    ],
)
def test_a_value_that_no_parameter_takes_is_told_of(
    provider: str, contract: str, value: str, status: int, why: str
) -> None:
    where = ("--base-url", f"{provider}/honest", "--cases", "10", "--value", value)
    done = cacp("probe", "--file", contract, *where)
    assert done.exit_code == status
    assert why in done.output
