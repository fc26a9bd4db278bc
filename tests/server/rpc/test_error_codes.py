"""What callers get for what a call raises."""

from collections.abc import Iterator

import pytest

from schemas.errors import ErrorCode
from server.domain.errors import InvalidHeader, InvalidInput, InvalidRequest, Refusal
from server.rpc.error_codes import CODES, error_of, failed, invalid_request, refused


def every_refusal(base: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for refusal in base.__subclasses__():
        yield refusal
        yield from every_refusal(refusal)


@pytest.mark.parametrize("refusal", [*every_refusal()])
def test_every_refusal_has_a_code_and_a_reason(refusal: type[Refusal]) -> None:
    code, message, data = error_of(refusal("why"))
    assert code == CODES[refusal]
    assert message.endswith("why")
    assert data["reason"] == refusal.reason


def test_an_invalid_request_is_not_an_invalid_param() -> None:
    assert error_of(InvalidRequest("x")) == (
        ErrorCode.INVALID_REQUEST,
        "x",
        {"reason": "invalid_request"},
    )


def test_only_params_are_called_params() -> None:
    assert error_of(InvalidInput("x is too long"))[1] == "Invalid params: x is too long"
    header = error_of(InvalidHeader("Last-Event-ID should be the id of an event"))
    assert header == (
        ErrorCode.INVALID_PARAMS,
        "Last-Event-ID should be the id of an event",
        {"reason": "invalid_params"},
    )


def test_a_method_reports_refusals_and_faults_as_json_rpc_errors() -> None:
    refusal = refused(InvalidInput("x"), "cacp/a")
    assert (refusal.code, refusal.message) == (-32602, "Invalid params: x")
    fault = failed(KeyError("secret"), "cacp/a")
    assert (fault.code, fault.data["reason"]) == (-32000, "internal_error")
    assert fault.data["id"] in fault.message
    assert "secret" not in fault.message


def test_what_is_not_a_request_is_answered_with_its_id() -> None:
    assert invalid_request("x", 7) == {
        "jsonrpc": "2.0",
        "error": {
            "code": -32600,
            "message": "Invalid request: x",
            "data": {"reason": "invalid_request"},
        },
        "id": 7,
    }
