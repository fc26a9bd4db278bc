"""`cacp demo`: the whole walk, on a real node of its own."""

from pathlib import Path

import pytest

from cli.client import CallRefused, NodeError, NodeUnanswered
from cli.demo import insist
from schemas.errors import ErrorCode
from tests.cli.run import cacp, process
from tests.support.node import Node
from tests.support.waiting import PATIENCE


def test_it_walks_a_contract_to_verified_and_leaves_nothing() -> None:
    # A newcomer's own settings must not reach the scratch node.
    done = process("demo", "--fast", port="1", db="/nonexistent/x.db", key="x")
    assert done.returncode == 0, done.stderr
    for part in (
        "contract/propose",
        "contractStatus=negotiating",
        "● verified",
        "asks: What does an expired coupon answer?",
        "- response.discount: number",
        "+ response.discount_cents: integer",
        "verifies: it works together",
        "the node and its data are removed",
    ):
        assert part in done.stdout
    assert "cacp_sk_" not in done.stdout


@pytest.mark.sqlite
def test_it_plays_on_a_running_node_and_its_keys_end(node: Node) -> None:
    place = ("--url", node.url, "--database", str(node.db))
    done = process("demo", "--fast", *place)
    assert done.returncode == 0, done.stderr
    assert "● verified" in done.stdout
    assert "the keys are revoked, and the project stays" in done.stdout
    ends = "SELECT revoked_at FROM keys WHERE agent_id LIKE 'aid://demo.example/%'"
    assert node.query(ends)
    assert all(row[0] for row in node.query(ends))


def test_a_node_without_its_database_is_refused(tmp_path: Path) -> None:
    assert "belong together" in cacp("demo", "--url", "http://127.0.0.1:1").stderr
    gone = str(tmp_path / "gone.db")
    refused = cacp("demo", "--url", "http://127.0.0.1:1", "--database", gone)
    assert refused.exit_code == 1
    assert "there is no database" in refused.stderr
    assert not Path(gone).exists()
    away = ("--database", "postgresql://127.0.0.1:1/x")
    assert "can't be used" in cacp("demo", "--url", "http://127.0.0.1:1", *away).stderr


def test_a_call_without_an_answer_is_made_again_and_a_refused_one_is_not() -> None:
    problems: list[NodeError] = [
        NodeUnanswered("broke off"),
        CallRefused(ErrorCode.SERVER_ERROR, "The database server can't be reached"),
    ]
    told: list[str] = []

    def call() -> str:
        if problems:
            raise problems.pop(0)
        return "done"

    assert insist(call, PATIENCE, told.append) == "done"
    assert told == ["broke off"]
    problems.append(CallRefused(ErrorCode.FORBIDDEN, "no"))
    with pytest.raises(CallRefused):
        insist(call, PATIENCE)
    problems.append(NodeUnanswered("broke off"))
    with pytest.raises(NodeUnanswered):
        insist(call, 0)
