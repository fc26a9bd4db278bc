"""`cacp tokens` on a real file."""

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import jwt
import pytest
import typer
from typer.testing import CliRunner, Result

from cli.tokens import app, seconds
from server.store import keys, projects, tokens
from server.store.projects import ProjectHeader
from tests.cli.run import named
from tests.support.located import connect, prepare

AGENT = "aid://example.com/frontend@1.0.0"
Run = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cacp.db"
    prepare(path)
    with closing(connect(path)) as db:
        projects.insert(db, ProjectHeader("p1", "n", "o", "planning", "any", 1, 1), [])
        keys.add(db, keys.new_key(), agent_id=AGENT, repo="frontend-app", now=1)
    return path


@pytest.fixture
def run(file: Path) -> Run:
    return lambda *words: CliRunner().invoke(app, words, env=named(db=str(file)))


def test_create_prints_a_token_that_the_node_takes(run: Run, file: Path) -> None:
    done = run("create", "p1", "--agent", AGENT, "--expires", "30m")
    assert done.exit_code == 0
    with closing(connect(file)) as db:
        secret = tokens.node_secret(db)
        (recorded,) = tokens.every(db)
    claims = jwt.decode(done.stdout.strip(), secret, algorithms=["HS256"], audience="cacp")
    assert (claims["sub"], claims["project"], claims["jti"]) == (AGENT, "p1", recorded.token_id)
    assert claims["exp"] - time.time() == pytest.approx(30 * 60, abs=30)
    assert recorded.token_id in done.stderr


def test_create_in_json_lasts_a_day_by_default(run: Run, file: Path) -> None:
    made = json.loads(run("create", "p1", "--agent", AGENT, "--json").stdout)
    assert set(made) == {"tokenId", "token", "projectId", "agentId", "expiresAt"}
    with closing(connect(file)) as db:
        (recorded,) = tokens.every(db)
    assert recorded.expires_at - recorded.created_at == 86_400 * 1_000_000


def test_the_nodes_own_agent_needs_no_key(run: Run) -> None:
    assert run("create", "p1", "--agent", "aid://localhost/local@1.0.0").exit_code == 0


def test_list_shows_everything_but_the_token(run: Run) -> None:
    made = json.loads(run("create", "p1", "--agent", AGENT, "--json").stdout)
    shown = run("list").stdout
    assert made["tokenId"] in shown
    assert made["token"] not in shown
    (row,) = json.loads(run("list", "--json").stdout)
    assert (row["projectId"], row["agentId"], row["revokedAt"]) == ("p1", AGENT, None)


def test_revoke_is_for_good(run: Run, file: Path) -> None:
    made = json.loads(run("create", "p1", "--agent", AGENT, "--json").stdout)
    assert run("revoke", made["tokenId"]).exit_code == 0
    with closing(connect(file)) as db:
        assert not tokens.is_active(db, made["tokenId"])
    again = run("revoke", made["tokenId"])
    assert again.exit_code == 1
    assert "not an active token" in again.stderr


@pytest.mark.parametrize(
    ("project", "agent", "problem"),
    [
        ("p2", AGENT, "no project here is named p2"),
        ("p1", "aid://example.com/frontend@2.0.0", "no active key"),
        ("p1", "nobody", "no active key"),
    ],
)
def test_refuses_a_token_that_could_not_be_used(
    run: Run, project: str, agent: str, problem: str
) -> None:
    done = run("create", project, "--agent", agent)
    assert done.exit_code == 1
    assert problem in done.stderr
    assert json.loads(run("list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("text", "found"), [("90s", 90), ("30m", 1_800), ("24h", 86_400), ("366d", 366 * 86_400)]
)
def test_times(text: str, found: int) -> None:
    assert seconds(text) == found


@pytest.mark.parametrize(
    "text", ["", "0s", "24", "h", "-1h", "1.5h", "1w", "367d", "9999999999d", "²h", " 1h"]
)
def test_wrong_times(run: Run, text: str) -> None:
    with pytest.raises(typer.BadParameter):
        seconds(text)
    assert run("create", "p1", "--agent", AGENT, f"--expires={text}").exit_code == 2


@pytest.mark.parametrize("command", ["create", "list", "revoke"])
def test_help_gives_an_example(run: Run, command: str) -> None:
    assert f"Example: cacp tokens {command}" in run(command, "--help").stdout
