"""cacp/project/board: the contracts by status, who must act, and what else is open."""

from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import InvalidInput, NotFound
from tests.server.methods.cacp.duo import Duo
from tests.support.in_process_node import ANA, BEN


def columns(board: Any) -> dict[str, list[str]]:
    return {
        column["status"]: [contract["name"] for contract in column["contracts"]]
        for column in board["columns"]
        if column["count"]
    }


def test_contracts_by_status_with_who_must_act(duo: Duo) -> None:
    duo.verified("done")
    duo.agreed("built next")
    duo.proposed("new")
    board = duo.ana("project/board")
    assert columns(board) == {"proposed": ["new"], "agreed": ["built next"], "verified": ["done"]}
    assert board["progress"] == {"contractCount": 3, "verifiedCount": 1, "waitingCount": 2}
    [new] = board["columns"][0]["contracts"]
    [step] = new["awaitedSteps"]
    assert (step["kind"], step["name"], step["agentId"]) == ("respond", "web", BEN)
    assert new["waitingSince"] == step["since"]
    [done] = board["columns"][4]["contracts"]
    assert done["awaitedSteps"] == []
    assert "waitingSince" not in done


def test_the_repo_that_blocks_most_comes_first(duo: Duo) -> None:
    duo.proposed("one")
    duo.agreed("two")
    web, api = duo.ana("project/board")["repos"]
    assert (web["name"], web["contractCount"]) == ("web", 2)
    assert web["steps"] == {"respond": 1, "implement": 1}
    assert (api["name"], api["contractCount"], api["steps"]) == ("api", 1, {"implement": 1})


def test_a_lost_race_is_marked(duo: Duo) -> None:
    duo.proposed()
    duo.desk.db.execute(
        "INSERT INTO attention_openings SELECT project_id, subject_id, 'conflict-1', 'conflict',"
        " urgency, since, repo_id, '', '', revision FROM attention_openings"
    )
    duo.desk.db.execute("INSERT INTO attention_counts VALUES (?, 'conflict', 1)", (duo.project,))
    [contract] = duo.ana("project/board")["columns"][0]["contracts"]
    assert contract["isInConflict"]
    duo.desk.db.execute("DELETE FROM attention_openings WHERE kind = 'conflict'")
    duo.desk.db.execute("DELETE FROM attention_counts WHERE kind = 'conflict'")


def test_open_questions_and_recent_decisions(duo: Duo) -> None:
    asked = duo.ana("context/askQuestion", question="Which\u202e\nformat?", urgent=True)
    duo.ben("context/askQuestion", question="Later?")
    for chosen in ("a", "b"):
        duo.ben("context/recordDecision", decision="d", chosen=chosen, rationale="r")
    board = duo.ben("project/board")
    assert board["questionCount"] == 2
    first = board["questions"][0]
    assert (first["question"], first["name"], first["isUrgent"]) == ("Which format?", "api", True)
    assert [decision["chosen"] for decision in board["decisions"]] == ["b", "a"]
    answer = {"content": {"answer": "json"}, "type": "api_spec", "replyTo": asked["packetId"]}
    duo.ben("context/share", **answer)
    assert duo.ben("project/board")["questionCount"] == 1


def test_who_is_awake_is_for_verified_callers(duo: Duo) -> None:
    duo.desk.node.last_calls["aid://example.com/ben"] = duo.desk.now
    web = next(repo for repo in duo.ana("project/board")["repos"] if repo["name"] == "web")
    assert web["isAwake"]
    assert web["lastSeen"]
    reader = Caller(ANA, "r", "known", "key")
    shown = duo.desk.call_as(reader, "cacp/project/board", projectId=duo.project)
    assert not any("lastSeen" in repo or "isAwake" in repo for repo in shown["repos"])


def test_a_column_has_pages(duo: Duo) -> None:
    for number in range(3):
        duo.proposed(f"{number}")
    [column] = duo.ana("project/board", status="proposed", limit=2)["columns"]
    assert ([contract["name"] for contract in column["contracts"]], column["count"]) == (
        ["0", "1"],
        3,
    )
    cursor = column["nextCursor"]
    [column] = duo.ana("project/board", status="proposed", limit=2, cursor=cursor)["columns"]
    assert [contract["name"] for contract in column["contracts"]] == ["2"]
    assert "nextCursor" not in column


def test_what_is_not_there(duo: Duo) -> None:
    with pytest.raises(NotFound):
        duo.ana("project/board", projectId="none")
    with pytest.raises(InvalidInput, match="cursor"):
        duo.ana("project/board", cursor="x")
