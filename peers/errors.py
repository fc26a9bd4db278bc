"""What may go wrong with a call to others, and what may be wrong with where it goes."""

from collections.abc import Callable
from typing import Any

RETRY_AFTER_MAX = 60

Problem = Callable[[str], str | None]
"""What is wrong with a URL or an address, in words for people; None when it may be called."""


class CallError(Exception):
    """A call that got no useful answer. The text completes "the peer …".

    CallError
     ├── Unreachable     no whole answer: it is down, too slow, or may not be called
     │    ├── NotConnected    there was no connection: nothing was sent
     │    └── TooLong         the answer is longer than what is taken
     └── Refused         it answers, but with an error, or with what was not asked for
    """

    retry_after = 0.0
    """For how many seconds the peer asks not to be asked again, a minute at most."""


class Unreachable(CallError):
    pass


class NotConnected(Unreachable):
    pass


class TooLong(Unreachable):
    pass


class Refused(CallError):
    """`status` is that of HTTP; `code` and `data` those of a JSON-RPC error, if it is one."""

    def __init__(self, message: str, *, status: int, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.data = data if isinstance(data, dict) else {}
        after = self.data.get("retryAfter")
        if isinstance(after, int) and after > 0:
            self.retry_after = float(min(after, RETRY_AFTER_MAX))
