from dataclasses import replace

import pytest

from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome, contract_digest
from server.domain.canonical import digest

PASSED = ProbeOutcome(
    "cacp probe",
    "a" * 64,
    7,
    (OperationTally("GET /a", 60, 40, 58),),
    (),
    (),
    "2026-01-01T00:00:00Z",
    1200,
)
FAILURE = ProbeFailure("GET /a", "undeclared_status", "It answers 500.", "curl http://localhost/a")


@pytest.mark.parametrize(
    ("outcome", "result", "status"),
    [
        (PASSED, "passed", 0),
        (replace(PASSED, failures=(FAILURE,)), "failed", 1),
        (replace(PASSED, failures=(FAILURE,), unproven=("No.",)), "failed", 1),
        (replace(PASSED, unproven=("GET /b was never answered.",)), "not_run", 4),
        (replace(PASSED, tallies=()), "not_run", 4),
    ],
)
def test_what_was_not_tried_has_not_passed(outcome: ProbeOutcome, result: str, status: int) -> None:
    assert (outcome.result, outcome.exit_status) == (result, status)
    assert outcome.output()["result"] == result


def test_the_digest_is_of_all_that_was_found() -> None:
    assert PASSED.cases == 100
    assert PASSED.output_digest == replace(PASSED).output_digest
    others = (replace(PASSED, seed=8), replace(PASSED, failures=(FAILURE,)))
    assert len({outcome.output_digest for outcome in (PASSED, *others)}) == 3


def test_a_contract_has_the_digest_that_the_node_binds_agreements_to() -> None:
    content = {"method": "GET", "path": "/é", "limit": 1.50, "b": [None, True]}
    assert contract_digest(content) == digest(content)
