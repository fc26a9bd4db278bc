"""Implementation methods (CACP 2.0, Implementation Methods; design §5)."""

import pytest

from schemas.implementation import (
    CompleteParams,
    ImplementationState,
    ReportParams,
    StartParams,
    VerifyParams,
    VerifyResult,
)
from tests.schemas.refusals import refusal

PLACE = {"projectId": "f0ebc7e6", "contractId": "695296cc"}


def test_the_specs_examples_are_accepted() -> None:
    plan = "Will implement GET endpoint with SQLAlchemy ORM"
    assert StartParams.model_validate(PLACE | {"plan": plan}).plan == plan
    files = ["src/routes/user.py", "src/models/user.py"]
    assert CompleteParams.model_validate(PLACE | {"files": files}).files == files
    found = {"result": "success", "notes": "Integration tests passing"}
    assert VerifyParams.model_validate(PLACE | found).result == "success"


def test_what_deployed_clients_add_is_accepted() -> None:
    assert StartParams.model_validate(PLACE | {"estimatedFiles": ["a.py"]}).estimated_files
    done = CompleteParams.model_validate(PLACE | {"testEndpoint": "http://api:8080", "notes": "n"})
    assert done.test_endpoint == "http://api:8080"
    failed = {"result": "failure", "failureDetails": {"status": 500}}
    assert VerifyParams.model_validate(PLACE | failed).failure_details == {"status": 500}


def test_results_carry_the_status_of_the_contract() -> None:
    failed = VerifyResult(status="failed", contract_status="agreed")
    assert failed.model_dump(by_alias=True, exclude_none=True) == {
        "status": "failed",
        "contractStatus": "agreed",
    }
    state = ImplementationState(
        repo_id="r1", agent_id="a", status="pending", files=[], started_at=None, completed_at=None
    )
    assert state.model_dump(by_alias=True)["startedAt"] is None


def test_a_result_is_one_of_three() -> None:
    assert refusal(VerifyParams, PLACE | {"result": "green"}) == (
        "result",
        "Input should be 'success', 'failure' or 'partial'",
    )


@pytest.mark.parametrize("report", ["", "x" * 1_000_001])
def test_a_report_has_text_and_an_end(report: str) -> None:
    assert refusal(ReportParams, PLACE | {"report": report})[0] == "report"
