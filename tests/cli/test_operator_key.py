"""Who gets the operator's key, and what it is used for (design §7), with a real node."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

from cli.client import CallRefused, NodeClient
from cli.operator_key import local_operator_key
from server.auth import operator_key
from server.store import keys
from tests.cli.run import cacp
from tests.support.located import connect
from tests.support.node import Node, bearer

HUGH = "aid://example.com/hugh"
COORDINATES = ("call", "acp/handoff", "action=list", "role=coordinator")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("operator")) as node:
        yield node


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that wants a key of everybody."""
    folder = tmp_path_factory.mktemp("exposed")
    public = {"public_url": "http://node.example", "bootstrap_key_file": folder / "first.key"}
    with Node(folder, **public) as node:
        yield node


def run(node: Node, *words: str, **variables: str) -> Result:
    return cacp(*words, **{"db": str(node.db), **variables})


def test_it_is_used_when_it_is_asked_for(node: Node) -> None:
    assert "needs the operator's key" in run(node, *COORDINATES).stderr
    agents = node.key("aid://example.com/ann", "app")
    for variables in ({}, {"key": agents}):
        done = run(node, *COORDINATES, "--operator", **variables)
        assert done.exit_code == 0, done.stderr


def test_only_the_node_of_this_database_gets_it(node: Node, exposed: Node, tmp_path: Path) -> None:
    elsewhere = run(node, *COORDINATES, "--operator", "--url", exposed.url)
    assert elsewhere.exit_code == 2
    assert f"at {node.url}, not at {exposed.url}" in elsewhere.stderr
    idle = cacp(*COORDINATES, "--operator", "--url", node.url, db=str(tmp_path / "none.db"))
    assert idle.exit_code == 1
    assert "no node of this user runs on" in idle.stderr


def test_a_file_that_is_open_to_others_is_not_used(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CACP_DB", str(node.db))
    assert local_operator_key(node.url) == node.operator
    file = operator_key.path_beside(node.db)
    file.chmod(0o644)
    try:
        assert "open to others (mode 0644)" in run(node, *COORDINATES, "--operator").stderr
        assert local_operator_key(node.url) is None
        assert "open to others" in capsys.readouterr().err
    finally:
        file.chmod(0o600)


def test_people_look_at_their_node_with_it_where_a_key_is_needed(exposed: Node) -> None:
    for words in (["status", "--json"], ["projects"], ["peers"]):
        done = run(exposed, *words)
        assert (done.exit_code, "key" in done.stderr) == (0, False), done.stderr
    assert exposed.http.get("/peers").status_code == 401


def test_a_stream_is_opened_with_it_too_and_it_is_looked_for_once(exposed: Node) -> None:
    asked: list[int] = []

    def find_key() -> str | None:
        asked.append(len(asked))
        return exposed.operator if len(asked) == 1 else None

    with NodeClient(exposed.url, find_key=find_key) as client:
        for _ in range(2):
            with client.stream("/events", {}, 30.0) as chunks:
                assert b"cacp changes" in next(chunks)
    none = NodeClient(exposed.url, find_key=lambda: None)
    with none as client, pytest.raises(CallRefused, match="A key is needed"):
        client.get("/peers")
    assert asked == [0]


@pytest.mark.parametrize("words", [["inbox"], ["call", "cacp/project/list"], ["approve"]])
def test_what_an_agent_or_a_human_does_is_not_done_with_it(exposed: Node, words: list[str]) -> None:
    done = run(exposed, *words)
    assert done.exit_code == 1
    assert "A key is needed" in done.stderr


def test_a_key_that_is_given_is_used(exposed: Node) -> None:
    revoked = exposed.key("aid://example.com/ann", "app")
    with closing(connect(exposed.db)) as db:
        keys.revoke(db, keys.every(db)[-1].key_id, now=1)
    assert "revoked" in run(exposed, "projects", key=revoked).stderr


# --- keys of humans ------------------------------------------------------------------------------


def made(result: Result) -> str:
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_humans_are_made_by_the_operator_and_by_humans(node: Node) -> None:
    first = made(run(node, "keys", "create", HUGH, "--human"))
    second = made(run(node, "keys", "create", HUGH, "--human", key=first))
    third = made(run(node, "keys", "create", HUGH, "--human", key=node.operator))
    for key in (first, second, third):
        params = {"jsonrpc": "2.0", "method": "acp/approvals", "params": {}, "id": 1}
        answer = node.http.post("/", json=params, headers=bearer(key)).json()
        assert "result" in answer


def test_nobody_else_makes_one(node: Node) -> None:
    project = node.call("cacp/project/create", name="n", objective="o")["projectId"]
    bound = made(run(node, "keys", "create", HUGH, "--human", "--project", project))
    revoked = made(run(node, "keys", "create", HUGH, "--human"))
    agents = node.key("aid://example.com/ann", "app")
    with closing(connect(node.db)) as db:
        [latest] = [key for key in keys.every(db) if key.human and key.projects is None][-1:]
        keys.revoke(db, latest.key_id, now=1)
        before = keys.every(db)
    for key in (agents, bound, revoked, keys.new_key()):
        refused = run(node, "keys", "create", HUGH, "--human", key=key)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "leave it out to use the operator key file" in refused.stderr
        assert key not in refused.stderr
    with closing(connect(node.db)) as db:
        assert keys.every(db) == before


@pytest.mark.sqlite
def test_a_database_from_before_gets_its_file(tmp_path: Path) -> None:
    """Once. A file that is lost later is not made by the way, since the operator is to know."""
    db = str(tmp_path / "cacp.db")
    first = cacp("keys", "create", HUGH, "--human", "--create", db=db)
    assert made(first)
    assert "made the operator key file" in first.stderr
    assert "made the operator" not in cacp("keys", "create", HUGH, "--human", db=db).stderr
    operator_key.path_beside(tmp_path / "cacp.db").unlink()
    lost = cacp("keys", "create", HUGH, "--human", db=db)
    assert lost.exit_code == 1
    assert "`cacp keys operator` makes a lost file again" in lost.stderr
    assert made(cacp("keys", "operator", db=db))
    assert made(cacp("keys", "create", HUGH, "--human", db=db))
