"""Why the node refuses. A refusal changes nothing.

Refusal
 ├── InvalidInput          what was sent can't be taken as it is
 ├── InvalidRequest        the HTTP request is wrong, whatever its JSON says
 ├── NotFound              no such project, contract, packet, …
 │    ├── HeldElsewhere    another node holds it, and is to be asked
 │    └── Damaged          it is here, but not what was written
 ├── IllegalTransition     not in this state; says which it is in and what is allowed
 ├── Unauthenticated       no or unknown credentials
 ├── Forbidden             known, but not allowed
 ├── Conflict              somebody else holds it, or the caller's view is stale
 ├── RateLimited           too many calls; says when to try again
 ├── TooLarge              over a limit
 └── Unavailable           our own fault or the disk's: nothing was written
      ├── NodeAway         another node had to be asked, and gave no answer
      └── Busy             no room for the answer now; says when to try again

`server.rpc.dispatch` gives each its JSON-RPC code; `reason` and `data` are for programs (design
§5).
"""

from collections.abc import Callable
from typing import Any, ClassVar


class Refusal(Exception):
    """Base of all refusals: a message for people, `reason` and `data` for programs."""

    reason: ClassVar[str]

    def __init__(self, message: str, /, *, reason: str | None = None, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Any] = {"reason": reason or self.reason, **data}


class InvalidInput(Refusal):
    reason = "invalid_params"


class InvalidRequest(Refusal):
    reason = "invalid_request"


class NotFound(Refusal):
    reason = "not_found"


class HeldElsewhere(NotFound):
    """`agent`'s call is for `node`, which holds what it is about. What can't ask that node refuses
    the call as it is."""

    def __init__(
        self,
        message: str,
        /,
        *,
        node: str,
        agent: str,
        call: dict[str, Any],
        human: bool = False,
        result: Callable[[Any], Any] = lambda answer: answer,
    ) -> None:
        """`human`: the agent's key is a human's. `result` makes the caller's of that node's
        answer."""
        super().__init__(message, node=node)
        self.node = node
        self.agent = agent
        self.call = call
        self.human = human
        self.result = result


class Damaged(NotFound):
    """It is stored here, and is not what was written: it is given to nobody."""

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


class NodeAway(Unavailable):
    reason = "node_away"


class Busy(Unavailable):
    reason = "busy"
