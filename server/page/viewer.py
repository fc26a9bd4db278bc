"""Who looks at a page."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from server.auth.authenticator import Caller

MessageKind = Literal["good", "bad"]


class PageMessage(NamedTuple):
    """What an action has done, or why it was refused."""

    kind: MessageKind
    text: str


@dataclass(frozen=True, slots=True)
class Viewer:
    """A caller at a browser. Without a session it only reads."""

    caller: Caller
    csrf: str | None = None
    """The token that its forms carry; None without a session."""
    expires_at: int | None = None
    """When its session ends, in microseconds since 1970."""
    cookie: str | None = None
    """A `Set-Cookie` header that the response must carry: the session's token was renewed."""
    message: PageMessage | None = None
    """The outcome of the action that led to this page."""

    @property
    def signed_in(self) -> bool:
        return self.csrf is not None

    @property
    def may_act(self) -> bool:
        """Whether the actions of the page are open to it."""
        return self.signed_in and self.caller.human
