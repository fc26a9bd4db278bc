"""Sessions of the page: when one lives, and when its browser gets a new id.

The browser holds a token, this node its hash. A session's token is renewed while it is used, so
that a stolen one is of little use; the one before stays valid until the browser has shown the new
one, and `GRACE` longer, because requests run concurrently and a response may be lost. A token that
comes back after that was copied: it ends the session.

Sessions go by the node's time (`now`), because a session that outlives its time is worse than one
that ends early: a clock that jumps ahead ends them. One that jumps back must not lengthen them, so
a session from the future does not live either.
"""

import re
from typing import Literal, NamedTuple

SECOND = 1_000_000
RENEWED_EVERY = 15 * 60 * SECOND
GRACE = 60 * SECOND
NOTED_EVERY = 60 * SECOND
"""How exactly the last use is noted: each note is a write."""
BEHIND = 300 * SECOND
"""How far the node's time may move back without ending sessions."""
SESSIONS_MAX = 20
"""Sessions of one agent; another one ends the one that was used longest ago."""
LINK_SECONDS = 60
LINKS_MAX = 20
"""Links of one key that wait to be opened."""
HOME = "/ui"
NEXT_MAX = 2_000

_LOCAL = re.compile(r"/(?:ui(?:/[!-~]*|\?[!-~]*)?|\?[!-~]*)?")
"""A path of the page in printable ASCII: nothing that a browser would strip or read as a host."""

Step = Literal["keep", "note", "confirm", "renew", "end"]
"""What a request does to its session: nothing; its last use is noted; its new token has arrived; it
gets a new token; it is over."""


class SessionTerms(NamedTuple):
    """How long sessions live: in all, and without use. Microseconds."""

    longest: int
    idle: int


class PageSession(NamedTuple):
    """A session. Times are stamps."""

    session_id: str
    key_hash: str
    agent: str
    """The address of the key's agent (`identity`)."""
    token_hash: str
    former_hash: str | None
    """The hash of the token before the last renewal."""
    confirmed: bool
    """Whether the browser has shown the current token."""
    begun_at: int
    renewed_at: int
    used_at: int
    expires_at: int

    def renewed(self, token_hash: str, shown_hash: str, now: int) -> "PageSession":
        """The session with a new token, in answer to a request with the one of `shown_hash`."""
        return self._replace(
            token_hash=token_hash,
            former_hash=shown_hash,
            confirmed=False,
            renewed_at=now,
            used_at=now,
        )


def begun(
    session_id: str, key_hash: str, agent: str, token_hash: str, now: int, terms: SessionTerms
) -> PageSession:
    """A new session."""
    until = now + terms.longest
    return PageSession(session_id, key_hash, agent, token_hash, None, True, now, now, now, until)


def is_live(session: PageSession, now: int, terms: SessionTerms) -> bool:
    """Whether a session still lives."""
    if now < session.used_at - BEHIND:
        return False
    return now < min(session.expires_at, session.used_at + terms.idle)


def step(session: PageSession, shown_hash: str, now: int, terms: SessionTerms) -> Step:
    """What a request with the token of `shown_hash`, the current or the former one, does to its
    session."""
    if not is_live(session, now, terms):
        return "end"
    if shown_hash != session.token_hash:
        return _step_of_former(session, now)
    if now - session.renewed_at >= RENEWED_EVERY:
        return "renew"
    if not session.confirmed:
        return "confirm"
    return "note" if abs(now - session.used_at) >= NOTED_EVERY else "keep"


def _step_of_former(session: PageSession, now: int) -> Step:
    if now - session.renewed_at < GRACE:
        return "keep"
    # The response with the new token was lost, or else somebody kept the former one.
    return "end" if session.confirmed else "renew"


def is_link_valid(made_at: int, expires_at: int, now: int) -> bool:
    """Whether a one-time link can still be opened."""
    return made_at - BEHIND <= now < expires_at


def local_path(text: str | None) -> str:
    """A path of the page to go on to: `text`, if it is one and nothing else; else the home page.

    >>> local_path("/ui/projects?after=1"), local_path("//evil.example"), local_path("/ui/\\n")
    ('/ui/projects?after=1', '/ui', '/ui')
    """
    if text is None or len(text) > NEXT_MAX or "\\" in text or _LOCAL.fullmatch(text) is None:
        return HOME
    return text
