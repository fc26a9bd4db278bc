"""How a call to another node fails, and why a URL or address may not be called."""

from collections.abc import Callable
from typing import Any

RETRY_AFTER_MAX = 60

Problem = Callable[[str], str | None]
"""The problem with a URL or an address, in words for people; None when it may be called."""


class CallError(Exception):
    """A call that got no useful answer. The text completes "the peer …".

    CallError
     ├── PeerUnreachable     no whole response: it is down, too slow, or may not be called
     │    ├── NotConnected   there was no connection: nothing was sent
     │    └── TooLong        the response is longer than is taken
     └── PeerRefused         it responds, but with an error or an invalid result
    """

    retry_after = 0.0
    """Seconds that the peer asks the caller to wait, a minute at most."""


class PeerUnreachable(CallError):
    pass


class NotConnected(PeerUnreachable):
    pass


class TooLong(PeerUnreachable):
    pass


class PeerRefused(CallError):
    """`status` is the HTTP status; `code` and `data` are those of the JSON-RPC error, if any."""

    def __init__(self, message: str, *, status: int, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.data = data if isinstance(data, dict) else {}
        after = self.data.get("retryAfter")
        if isinstance(after, int) and after > 0:
            self.retry_after = float(min(after, RETRY_AFTER_MAX))
