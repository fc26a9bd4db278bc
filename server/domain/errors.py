"""Refusals: the errors that callers get. A refusal changes nothing.

Refusal
 ├── InvalidInput          the params or their content are invalid
 │    └── InvalidHeader    an HTTP header or query parameter is invalid
 ├── InvalidRequest        the HTTP request is invalid, whatever its JSON says
 ├── NotFound              no such project, contract, packet, …
 │    └── Damaged          it is stored here, but damaged
 ├── IllegalTransition     not allowed in this state; names the state and what is allowed
 ├── Unauthenticated       missing or unknown credentials
 ├── Forbidden             a known caller without the right
 ├── Conflict              somebody else holds it, or the caller's data is stale
 ├── RateLimited           too many calls; says when to try again
 ├── TooLarge              over a limit
 └── Unavailable           a fault of the node or its disk; nothing was written
     └── OutcomeUnknown    the database server was lost while it committed
      ├── NodeAway         another node was needed and did not answer
      └── Busy             no room for the answer now; says when to try again

`server.rpc.error_codes` gives each its JSON-RPC code; `reason` and `data` are for programs (design
§5).
"""

from typing import Any, ClassVar


class Refusal(Exception):
    """Base of all refusals: a message for people, `reason` and `data` for programs."""

    reason: ClassVar[str] = "refused"

    def __init__(self, message: str, /, *, reason: str | None = None, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Any] = {"reason": reason or self.reason, **data}


class InvalidInput(Refusal):
    reason = "invalid_params"


class InvalidHeader(InvalidInput):
    """An HTTP header or query parameter is invalid, rather than a method's params."""


class InvalidRequest(Refusal):
    reason = "invalid_request"


class NotFound(Refusal):
    reason = "not_found"


class Damaged(NotFound):
    """The stored data differs from what was written, so it is not served."""

    reason = "content_corrupt"


class IllegalTransition(Refusal):
    reason = "illegal_transition"


class Unauthenticated(Refusal):
    reason = "unauthenticated"


class Forbidden(Refusal):
    reason = "forbidden"


class Conflict(Refusal):
    reason = "conflict"


class RateLimited(Refusal):
    reason = "rate_limited"


class TooLarge(Refusal):
    reason = "too_large"


class Unavailable(Refusal):
    reason = "unavailable"


class OutcomeUnknown(Unavailable):
    """The answer to a commit was lost: whether the call took place can't be found out."""

    reason = "outcome_unknown"


class NodeAway(Unavailable):
    reason = "node_away"


class Busy(Unavailable):
    reason = "busy"
