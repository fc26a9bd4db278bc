"""JSON-RPC error codes (CACP 2.0, Error Codes)."""

from schemas.errors import ErrorCode


def test_the_codes_are_those_of_the_spec_and_of_the_design() -> None:
    assert {code.name: int(code) for code in ErrorCode} == {
        "PARSE_ERROR": -32700,
        "INVALID_REQUEST": -32600,
        "METHOD_NOT_FOUND": -32601,
        "INVALID_PARAMS": -32602,
        "SERVER_ERROR": -32000,
        "UNAUTHENTICATED": -32001,
        "FORBIDDEN": -32003,
        "CONFLICT": -32004,
        "RATE_LIMITED": -32005,
        "TOO_LARGE": -32006,
    }
