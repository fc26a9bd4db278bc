"""cacp/implementation/* (CACP 2.0, Implementation Methods; design §5)."""

from typing import Any

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import AGENT, REPO
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team


def work_of(team: Team, contract: str, repo: str) -> Any:
    repo_id = team.repo_id(repo)
    return next(
        one for one in team.contract(contract)["implementations"] if one["repo_id"] == repo_id
    )


def test_start(team: Team) -> None:
    """CACP 2.0, cacp/implementation/start."""
    contract = team.agreed()
    plan = "Will implement GET endpoint with SQLAlchemy ORM"
    answer = team.backend(
        "implementation/start", contractId=contract, plan=plan, estimatedFiles=["src/user.py"]
    )
    assert answer == {
        "status": "started",
        "contractStatus": "agreed",
        "implementationId": answer["implementationId"],
    }
    work = work_of(team, contract, REPO)
    assert work == {
        "repo_id": team.repo_id(REPO),
        "agent_id": AGENT,
        "status": "in_progress",
        "plan": plan,
        "files": ["src/user.py"],
        "started_at": work["started_at"],
    }
    assert work["started_at"] == team.contract(contract)["updated_at"]


def test_complete(team: Team) -> None:
    """CACP 2.0, cacp/implementation/complete; every party complete → implemented."""
    contract = team.agreed()
    team.backend("implementation/start", contractId=contract, plan="p")
    answer = team.backend(
        "implementation/complete",
        contractId=contract,
        files=["src/routes/user.py", "src/models/user.py"],
        notes="done",
        testEndpoint="http://127.0.0.1:9000",
    )
    assert answer == {"status": "complete", "contractStatus": "agreed"}
    work = work_of(team, contract, REPO)
    assert (work["status"], work["plan"], work["notes"]) == ("complete", "p", "done")
    assert work["files"] == ["src/routes/user.py", "src/models/user.py"]
    assert work["test_endpoint"] == "http://127.0.0.1:9000"
    assert work["started_at"] < work["completed_at"]
    answer = team.frontend("implementation/complete", contractId=contract, files=[])
    assert answer == {"status": "complete", "contractStatus": "implemented"}


@pytest.mark.parametrize(
    ("result", "status", "contract_status"),
    [
        ("success", "verified", "verified"),
        ("failure", "failed", "agreed"),
        ("partial", "partial", "implemented"),
    ],
)
def test_verify(team: Team, result: str, status: str, contract_status: str) -> None:
    """CACP 2.0, cacp/implementation/verify; design §5."""
    contract = team.implemented()
    answer = team.backend(
        "implementation/verify",
        contractId=contract,
        result=result,
        notes="Integration tests passing",
        failureDetails={"test": "login"},
    )
    assert answer == {"status": status, "contractStatus": contract_status}


def test_after_a_failed_verification_the_implementations_need_revision(team: Team) -> None:
    """Design §5: back to agreed, implementations need revision."""
    contract = team.implemented()
    team.backend("implementation/verify", contractId=contract, result="failure")
    works = team.contract(contract)["implementations"]
    assert [work["status"] for work in works] == ["needs_revision"] * 2
    team.backend("implementation/complete", contractId=contract, files=["src/user.py"])
    assert team.contract(contract)["status"] == "agreed"
    team.frontend("implementation/complete", contractId=contract, files=["src/user.ts"])
    answer = team.backend("implementation/verify", contractId=contract, result="success")
    assert answer["contractStatus"] == "verified"


def test_a_verified_contract_can_still_fail(team: Team) -> None:
    contract = team.implemented()
    for result, status in [("success", "verified"), ("partial", "verified"), ("failure", "agreed")]:
        answer = team.frontend("implementation/verify", contractId=contract, result=result)
        assert answer["contractStatus"] == status


@pytest.mark.parametrize(
    ("method", "params", "state"),
    [
        ("start", {}, "proposed"),
        ("complete", {"files": []}, "proposed"),
        ("verify", {"result": "success"}, "proposed"),
        ("verify", {"result": "success"}, "agreed"),
    ],
)
def test_a_step_too_early_or_too_late_is_illegal(
    team: Team, method: str, params: dict[str, Any], state: str
) -> None:
    contract = getattr(team, state)()
    with refused(-32602, "illegal_transition", **{"from": state, "action": method}):
        team.backend(f"implementation/{method}", contractId=contract, **params)


def test_get_status(team: Team) -> None:
    contract = team.agreed()
    team.frontend("implementation/start", contractId=contract)
    status = team.backend("implementation/getStatus", contractId=contract)
    assert status == {
        "contractId": contract,
        "contractStatus": "agreed",
        "implementations": [
            {
                "repoId": team.repo_id(FRONTEND),
                "agentId": FRONTEND_AGENT,
                "status": "in_progress",
                "files": [],
                "startedAt": status["implementations"][0]["startedAt"],
            }
        ],
    }


# --- cacp/implementation/report (wire format) ---------------------------------------------------

OK = "All done.\nSTATUS:ok\nFILES_CREATED:src/a.py\nFILES_MODIFIED:src/b.py\nTESTS:pass:4\n"


def test_report_ok_is_complete(team: Team) -> None:
    contract = team.agreed()
    answer = team.backend("implementation/report", contractId=contract, report=OK)
    assert answer["status"] == "complete"
    assert answer["contractStatus"] == "agreed"
    assert answer["report"]["status"] == "ok"
    assert answer["warnings"] == []
    work = work_of(team, contract, REPO)
    assert (work["status"], work["files"]) == ("complete", ["src/a.py", "src/b.py"])


def test_report_partial_is_in_progress(team: Team) -> None:
    contract = team.agreed()
    answer = team.backend("implementation/report", contractId=contract, report="STATUS:partial")
    assert answer["status"] == "started"
    assert work_of(team, contract, REPO)["status"] == "in_progress"


def test_report_fail_needs_revision(team: Team) -> None:
    contract = team.agreed()
    text = "STATUS:fail\nERROR:no database"
    answer = team.backend("implementation/report", contractId=contract, report=text)
    assert answer["status"] == "needs_revision"
    work = work_of(team, contract, REPO)
    assert work["status"] == "needs_revision"
    assert "no database" in work["notes"]


def test_a_report_of_what_fails_completes_nothing(team: Team) -> None:
    """A field behind a value over two lines counts; the result says why it isn't complete."""
    contract = team.agreed()
    text = "STATUS:ok\nLEARNED:one\ntwo\nTESTS:fail:3\nBUILD:fail"
    answer = team.backend("implementation/report", contractId=contract, report=text)
    assert answer["status"] == "needs_revision"
    assert answer["report"]["tests"] == {"outcome": "fail", "count": 3}
    assert [(one["line"], one["field"]) for one in answer["warnings"]] == [
        (2, "LEARNED"),
        (4, "TESTS"),
        (5, "BUILD"),
    ]
    assert "the work is not done" in answer["warnings"][1]["message"]
    work = work_of(team, contract, REPO)
    assert (work["status"], work.get("completed_at")) == ("needs_revision", None)
    assert work["notes"].startswith("status: ok\ntests: fail (3)")


def test_an_odd_value_is_read_with_a_warning(team: Team) -> None:
    contract = team.agreed()
    text = 'STATUS: "ok" (all good)\nTESTS: n/a'
    answer = team.backend("implementation/report", contractId=contract, report=text)
    assert answer["status"] == "complete"
    assert answer["warnings"][1] == {
        "line": 2,
        "field": "TESTS",
        "message": "'n/a' is read as skip",
    }


def test_report_needs_decision_asks_the_question(team: Team) -> None:
    contract = team.agreed()
    text = "STATUS:needs_decision\nQUESTION:JWT or cookies?"
    answer = team.backend("implementation/report", contractId=contract, report=text)
    assert answer["status"] == "question_asked"
    [packet] = team.backend("context/list", type="question")["packets"]
    assert packet["packet_id"] == answer["packetId"]
    assert packet["content"]["question"] == "JWT or cookies?"
    assert packet["related_contracts"] == [contract]


def test_a_report_that_asks_is_all_or_nothing(team: Team) -> None:
    text = "STATUS:needs_decision\nQUESTION:Why?"
    contract = team.proposed()
    with refused(-32602, "illegal_transition"):
        team.backend("implementation/report", contractId=contract, report=text)
    assert team.backend("context/list") == {"packets": []}


@pytest.mark.parametrize(
    "text", ["Hello", "STATUS:nonsense", "TASK:build it", "STATUS:ok\nTESTS:1/2 passed"]
)
def test_what_is_no_report_is_refused(team: Team, text: str) -> None:
    with refused(-32602, "invalid_params", path="report"):
        team.backend("implementation/report", contractId=team.agreed(), report=text)
