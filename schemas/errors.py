"""JSON-RPC error codes (CACP 2.0, Error Codes; design §5)."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Every error code of the node. `error.data.reason` distinguishes cases with the same code."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    SERVER_ERROR = -32000
    UNAUTHENTICATED = -32001
    FORBIDDEN = -32003
    CONFLICT = -32004
    RATE_LIMITED = -32005
    TOO_LARGE = -32006
