"""cacp/project/timeline and stateAt: what was done, and the project as it was."""

from typing import Any

import pytest

from schemas.base import iso
from server.domain.errors import InvalidInput
from tests.server.methods.cacp.duo import Duo
from tests.support.in_process_node import ANA, BEN


def steps(page: Any) -> list[tuple[str, str, str]]:
    return [(step["subject"], step["step"], step.get("repo", "")) for step in page["moments"]]


def columns(state: Any) -> dict[str, list[str]]:
    return {
        column["status"]: [contract["name"] for contract in column["contracts"]]
        for column in state["columns"]
        if column["count"]
    }


STORY = [
    ("contract", "verified", "web"),
    ("contract", "completed", "web"),
    ("contract", "completed", "api"),
    ("contract", "agreed", "web"),
    ("contract", "proposed", "api"),
    ("repo", "joined", "web"),
    ("repo", "joined", "api"),
    ("project", "created", ""),
]


def test_the_story_of_a_project_is_newest_first_and_paged(duo: Duo) -> None:
    duo.verified()
    assert steps(duo.ana("project/timeline")) == STORY
    seen: list[tuple[str, str, str]] = []
    cursor: dict[str, str] = {}
    while True:
        page = duo.ana("project/timeline", limit=3, **cursor)
        seen += steps(page)
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert seen == STORY


def test_it_tells_questions_answers_decisions_and_releases(duo: Duo) -> None:
    asked = duo.ana("context/askQuestion", question="Which format?")
    answer = {"content": {"answer": "json"}, "type": "api_spec", "replyTo": asked["packetId"]}
    duo.ben("context/share", **answer)
    duo.ana("context/recordDecision", decision="Format", chosen="json", rationale="r")
    duo.ben("repo/release", repoName="web")
    moments = duo.ana("project/timeline")["moments"]
    shown = [(step["step"], step.get("note"), step.get("agentId")) for step in moments[:4]]
    assert shown == [
        ("released", None, BEN),
        ("decided", "Format", ANA),
        ("answered", '{"answer":"json"}', BEN),
        ("asked", "Which format?", ANA),
    ]


def test_each_state_is_found_again_by_its_number(duo: Duo) -> None:
    duo.verified()
    last = duo.ana("project/stateAt")
    board = duo.ana("project/board")
    assert last["columns"] == board["columns"]
    assert last["progress"] == board["progress"]
    assert last["change"] == last["changeCount"] == 7
    assert "next" not in last
    states = []
    state = duo.ana("project/stateAt", change=1)
    while True:
        states.append(columns(state))
        if "next" not in state:
            break
        later = duo.ana("project/stateAt", at=state["next"])
        assert later["previous"] == state["changedAt"]
        state = later
    assert states == [
        *[{}] * 2,
        {"proposed": ["c"]},
        *[{"agreed": ["c"]}] * 2,
        {"implemented": ["c"]},
        {"verified": ["c"]},
    ]


def test_a_state_shows_what_was_done_who_held_what_and_who_had_to_act(duo: Duo) -> None:
    duo.agreed()
    duo.ben("repo/release", repoName="web")
    first = duo.ana("project/stateAt", change=1)
    assert [step["step"] for step in first["steps"]] == ["created", "joined"]
    assert [repo.get("agentId") for repo in first["repos"]] == [ANA, None]
    proposed = duo.ana("project/stateAt", change=3)
    assert [repo.get("agentId") for repo in proposed["repos"]] == [ANA, BEN]
    [contract] = proposed["columns"][0]["contracts"]
    assert [(step["kind"], step["name"]) for step in contract["awaitedSteps"]] == [
        ("respond", "web")
    ]
    last = duo.ana("project/stateAt")
    assert [repo.get("agentId") for repo in last["repos"]] == [ANA, None]


def test_context_is_counted_as_of_then(duo: Duo) -> None:
    asked = duo.ana("context/askQuestion", question="Which?")
    duo.ben("context/share", content={"a": 1}, type="api_spec", replyTo=asked["packetId"])
    duo.ana("context/recordDecision", decision="d", chosen="c", rationale="r")
    counts = [
        [state[name] for name in ("packetCount", "questionCount", "decisionCount")]
        for change in range(2, 6)
        for state in [duo.ana("project/stateAt", change=change)]
    ]
    assert counts == [[0, 0, 0], [1, 1, 0], [2, 0, 0], [3, 0, 1]]


def test_it_says_what_it_cannot_know(duo: Duo) -> None:
    contract = duo.proposed()
    asked = {"action": "request_change", "comment": "no"}
    duo.ben("contract/respond", contractId=contract, **asked)
    before = duo.ana("project/stateAt")["changedAt"]
    assert duo.ana("project/stateAt", at=before)["unknown"] == []
    duo.ben("contract/respond", contractId=contract, action="agree")
    duo.ana("project/updateStatus", status="implementing")
    unknown = duo.ana("project/stateAt", at=before)["unknown"]
    assert unknown[0].startswith("1 response to versions of that time came later")
    assert unknown[1].startswith("The project's name, objective and status were last set")
    assert len(unknown) == 2


def test_before_the_project_there_is_nothing(duo: Duo) -> None:
    state = duo.ana("project/stateAt", at=iso(1))
    assert (state["change"], columns(state), state["steps"]) == (0, {}, [])
    assert state["next"] == state["first"]


@pytest.mark.parametrize("given", [{"change": 3}, {"change": 1, "at": iso(1)}])
def test_a_change_that_is_not_there(duo: Duo, given: Any) -> None:
    with pytest.raises(InvalidInput, match="change"):
        duo.ana("project/stateAt", **given)


def test_pages_of_many_contracts_leave_nothing_out(duo: Duo) -> None:
    """A page looks only at the contracts that changed last."""
    contracts = [duo.agreed(f"{number}") for number in range(6)]
    for contract in contracts[::2]:
        duo.ana("implementation/start", contractId=contract, plan="first")
        # A new plan is a fact, but no step.
        duo.ana("implementation/start", contractId=contract, plan="second")
    whole = duo.ana("project/timeline", limit=100)["moments"]
    seen: list[Any] = []
    cursor: dict[str, str] = {}
    while len(seen) < len(whole):
        page = duo.ana("project/timeline", limit=2, **cursor)
        assert len(page["moments"]) in (2, len(whole) - len(seen))
        seen += page["moments"]
        cursor = {"cursor": page.get("nextCursor", "")}
    assert seen == whole
    assert cursor == {"cursor": ""}
