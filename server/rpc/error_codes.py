"""Maps what a call raises to JSON-RPC errors. The only module that knows the codes of refusals
(design §5)."""

import secrets
from typing import Any

import structlog

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.domain.errors import (
    Busy,
    Conflict,
    Damaged,
    Forbidden,
    IllegalTransition,
    InvalidHeader,
    InvalidInput,
    InvalidRequest,
    NodeAway,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    Refusal,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

log = structlog.get_logger()

CODES: dict[type[Refusal], ErrorCode] = {
    InvalidInput: ErrorCode.INVALID_PARAMS,
    InvalidHeader: ErrorCode.INVALID_PARAMS,
    InvalidRequest: ErrorCode.INVALID_REQUEST,
    NotFound: ErrorCode.INVALID_PARAMS,
    Damaged: ErrorCode.INVALID_PARAMS,
    IllegalTransition: ErrorCode.INVALID_PARAMS,
    Unauthenticated: ErrorCode.UNAUTHENTICATED,
    Forbidden: ErrorCode.FORBIDDEN,
    Conflict: ErrorCode.CONFLICT,
    RateLimited: ErrorCode.RATE_LIMITED,
    TooLarge: ErrorCode.TOO_LARGE,
    OutcomeUnknown: ErrorCode.SERVER_ERROR,
    Unavailable: ErrorCode.SERVER_ERROR,
    NodeAway: ErrorCode.SERVER_ERROR,
    Busy: ErrorCode.SERVER_ERROR,
}


def error_of(refusal: Refusal) -> tuple[ErrorCode, str, dict[str, Any]]:
    """A refusal's code, message and data. A fault of the node gets an id that the log has too."""
    code = CODES[type(refusal)]
    if code == ErrorCode.SERVER_ERROR and not isinstance(refusal, NodeAway | Busy):
        error_id = secrets.token_hex(8)
        log.error("unavailable", error_id=error_id, reason=refusal.data["reason"])
        return code, f"Server error {error_id}: {refusal.message}", refusal.data | {"id": error_id}
    if code == ErrorCode.INVALID_PARAMS and not isinstance(refusal, InvalidHeader):
        return code, f"Invalid params: {refusal.message}", refusal.data
    return code, refusal.message, refusal.data


def invalid_request(problem: str, id: Any = None) -> dict[str, Any]:
    """The response to what is not a JSON-RPC request."""
    return jsonrpc.error(
        ErrorCode.INVALID_REQUEST, f"Invalid request: {problem}", {"reason": "invalid_request"}, id
    )


class MethodError(Exception):
    """The error that answers a call of a method."""

    def __init__(self, code: ErrorCode, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def refused(refusal: Refusal, method: str) -> MethodError:
    """A method's refusal, logged."""
    code, message, data = error_of(refusal)
    log.debug("refused", **data | {"method": method})
    return MethodError(code, message, data)


def failed(error: Exception, method: str) -> MethodError:
    """An unexpected exception of a method, logged."""
    return MethodError(*server_error(error, method))


def server_error(error: Exception, where: str) -> tuple[ErrorCode, str, dict[str, Any]]:
    """Log an unexpected exception with an id. The returned error has only the id."""
    error_id = secrets.token_hex(8)
    log.error("failed", error_id=error_id, where=where, exc_info=error)
    return (
        ErrorCode.SERVER_ERROR,
        f"Server error {error_id}: an internal error; the operator finds the details in the log",
        {"reason": "internal_error", "id": error_id},
    )
