"""Signing in to the page: sessions in cookies, and the one-time links that begin them."""

import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import NamedTuple

import structlog
from starlette.requests import Request

from server.auth.authenticator import Caller
from server.domain import page_session
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, Unauthenticated, Unavailable
from server.domain.page_session import LINK_SECONDS, SECOND, PageSession, SessionTerms, Step
from server.http.admission import Admission
from server.page.cookies import PageCookies
from server.page.forms import read_form
from server.page.viewer import Viewer
from server.settings import Settings
from server.store import keys, page_sessions
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.page_sessions import PageLink

log = structlog.get_logger()

_SCOPE = "cacp.page_session"
"""Where a request notes its session's id: the token may be renewed while a stream is open."""


class OneTimeLink(NamedTuple):
    """The code of a link, which is shown once, and when it ends (a stamp)."""

    code: str
    expires_at: int


class _Advanced(NamedTuple):
    """A session after a request, and what the request did to it."""

    session: PageSession
    step: Step


class PageSessions:
    """Lets viewers in: with a key in a header, by their session, or as a program of this machine.

    A session is bound to the key that began it: it ends with the key, or with a ban of its agent.
    """

    def __init__(
        self, settings: Settings, database: Database, admission: Admission, secret: bytes
    ) -> None:
        self._database = database
        self._admission = admission
        self._secret = hmac.digest(secret, b"page", "sha256")
        self._terms = SessionTerms(
            settings.page_session_seconds * SECOND, settings.page_idle_seconds * SECOND
        )
        self.cookies = PageCookies(settings, self._secret)

    # --- coming in ----------------------------------------------------------------------------

    async def enter(self, request: Request) -> Viewer:
        """The viewer of a request. Raises Unauthenticated, Forbidden or RateLimited."""
        self.cookies.check_reader(request)
        if "authorization" not in request.headers:
            viewer = await self._in_session(request)
            if viewer is not None:
                return viewer
        return Viewer((await self._admission.enter(request.scope))[1])

    async def recheck(self, request: Request, viewer: Viewer) -> None:
        """Raises Unauthenticated or Forbidden for a viewer that would no longer be let in."""
        session_id = request.scope.get(_SCOPE)
        if session_id is None:
            await self._admission.recheck_access(request.scope, viewer.caller)
            return
        session = await self._database.read(lambda db: page_sessions.by_id(db, session_id))
        if session is None or not page_session.is_live(session, self._database.now(), self._terms):
            raise Unauthenticated("You are signed out: sign in again", reason="session_ended")
        await self._admission.recheck_by_hash(request.scope, session.key_hash, viewer.caller)

    async def form_of(self, request: Request, viewer: Viewer) -> dict[str, str]:
        """The fields of a form that comes from a page of this viewer's session. Raises Forbidden
        for any other, and as `read_form`."""
        self.cookies.check_origin(request)
        if viewer.csrf is None:
            raise Forbidden(
                "Sign in with a human's key first: without a session the page only shows",
                reason="no_session",
            )
        fields = await read_form(request)
        if not hmac.compare_digest(fields.get("csrf", "").encode(), viewer.csrf.encode()):
            raise Forbidden(
                "This form is of an earlier session: open the page again, and repeat it there",
                reason="wrong_csrf_token",
            )
        return fields

    async def _in_session(self, request: Request) -> Viewer | None:
        token = self.cookies.token_of(request)
        if token is None:
            return None
        shown = _hash_of(token)
        session = await self._database.read(lambda db: page_sessions.find(db, shown))
        if session is None:
            return None
        try:
            caller = await self._admission.enter_by_hash(request.scope, session.key_hash)
        except (Unauthenticated, Forbidden) as refusal:
            if refusal.data["reason"] not in ("unknown_key", "revoked_key", "banned"):
                raise
            await self._end(session, refusal.data["reason"])
            return None
        return await self._advanced(request, session, shown, caller)

    async def _advanced(
        self, request: Request, session: PageSession, shown: str, caller: Caller
    ) -> Viewer | None:
        """The viewer, once the session is noted, renewed or ended as this request makes due."""
        cookie = None
        todo = page_session.step(session, shown, self._database.now(), self._terms)
        if todo != "keep":
            token = secrets.token_urlsafe(32)
            session, done = await self._advance(session, shown, _hash_of(token))
            if done == "end":
                log.info("page_session_ended", agent=session.agent, reason="session_ended")
                return None
            if done == "renew":
                left = (session.expires_at - self._database.now()) // SECOND
                cookie = self.cookies.with_token(token, max(0, left))
        request.scope[_SCOPE] = session.session_id
        csrf = self._csrf(session.session_id)
        message = self.cookies.message_for(request, csrf)
        return Viewer(caller, csrf, session.expires_at, cookie, message)

    async def _advance(self, known: PageSession, shown: str, fresh: str) -> _Advanced:
        """Decide again on what is stored now: requests run concurrently."""

        def advance(to: Transaction) -> _Advanced:
            session = page_sessions.find(to.connection, shown)
            if session is None:
                return _Advanced(known, "end")
            todo = page_session.step(session, shown, to.now, self._terms)
            if todo == "end":
                page_sessions.end(to.connection, session.session_id)
            elif todo == "renew":
                session = session.renewed(fresh, shown, to.now)
                page_sessions.put(to.connection, session)
            elif todo != "keep":
                session = session._replace(confirmed=True, used_at=to.now)
                page_sessions.put(to.connection, session)
            return _Advanced(session, todo)

        try:
            return await self._database.write(advance)
        except Unavailable:
            # The disk takes no writes now; that is no reason to sign anybody out.
            return _Advanced(known, "keep")

    async def _end(self, session: PageSession, reason: str) -> None:
        log.info("page_session_ended", agent=session.agent, reason=reason)
        with suppress(Unavailable):
            # It is refused at each request, whether or not its row is gone.
            await self._database.write(
                lambda to: page_sessions.end(to.connection, session.session_id)
            )

    # --- signing in and out -------------------------------------------------------------------

    async def sign_in(self, request: Request, key: str) -> str:
        """Begin a session with a key. Returns the `Set-Cookie`. Raises as `Admission.enter`."""
        self.cookies.check_origin(request)
        raw = key.strip().encode()
        caller = await self._admission.enter_with_key(request.scope, raw)
        return await self._begin(request, keys.hash_of(raw), caller)

    async def sign_out(self, request: Request, viewer: Viewer, *, everywhere: bool) -> str:
        """End the viewer's session, or all of its agent. Returns the `Set-Cookie`."""
        session_id, agent = request.scope[_SCOPE], identity(viewer.caller.agent_id)

        def end(to: Transaction) -> None:
            if everywhere:
                page_sessions.end_all_of(to.connection, agent)
            else:
                page_sessions.end(to.connection, session_id)

        await self._database.write(end)
        log.info("signed_out", agent=agent, everywhere=everywhere)
        return self.cookies.without_token()

    async def make_link(self, request: Request) -> OneTimeLink:
        """A code that begins a session with the key of this request, once and soon. Raises
        Forbidden for a caller without a key."""
        headers, caller = await self._admission.enter(request.scope)
        if caller.via != "key":
            raise Forbidden(
                "A one-time link signs in with the key that asks for it, and this call has none",
                reason="key_needed",
            )
        key = headers[b"authorization"].split()[-1]
        code = secrets.token_urlsafe(32)

        def put(to: Transaction) -> OneTimeLink:
            page_sessions.sweep(to.connection, to.sure)
            until = to.now + LINK_SECONDS * SECOND
            link = PageLink(keys.hash_of(key), to.now, until)
            page_sessions.put_link(to.connection, _hash_of(code), link, page_session.LINKS_MAX)
            return OneTimeLink(code, until)

        return await self._database.write(put)

    async def open_link(self, request: Request, code: str) -> str:
        """Begin a session with the code of a link. Returns the `Set-Cookie`.

        Raises Conflict in a browser that is signed in as somebody else: a link must not change
        whose page somebody looks at without a word.
        """
        self.cookies.check_origin(request)
        viewer = await self._in_session(request)
        hashed = _hash_of(code)
        taken, now = await self._database.write(
            lambda to: (page_sessions.take_link(to.connection, hashed), to.now)
        )
        if taken is None or not page_session.is_link_valid(taken.made_at, taken.expires_at, now):
            await self._admission.check_stranger(request.scope)
            raise Unauthenticated(
                "This link was opened before or is older than a minute: "
                "`cacp open` makes a new one",
                reason="unknown_link",
            )
        caller = await self._admission.enter_by_hash(request.scope, taken.key_hash)
        if viewer is not None and not same_agent(viewer.caller.agent_id, caller.agent_id):
            raise Conflict(
                f"This browser is signed in as {viewer.caller.agent_id}, and the link is for "
                f"{caller.agent_id}: sign out first, then run `cacp open` again",
                reason="signed_in_as_other",
            )
        return await self._begin(request, taken.key_hash, caller)

    async def _begin(self, request: Request, key_hash: str, caller: Caller) -> str:
        """A new session; never one whose token somebody may have planted. That of this browser, if
        it has one, ends."""
        token = secrets.token_urlsafe(32)
        session_id = f"ps_{secrets.token_hex(8)}"
        former, agent = self.cookies.token_of(request), identity(caller.agent_id)

        def begin(to: Transaction) -> None:
            page_sessions.sweep(to.connection, to.sure)
            before = former and page_sessions.find(to.connection, _hash_of(former))
            if before:
                page_sessions.end(to.connection, before.session_id)
            session = page_session.begun(
                session_id, key_hash, agent, _hash_of(token), to.now, self._terms
            )
            page_sessions.put(to.connection, session)
            page_sessions.end_older(to.connection, agent, page_session.SESSIONS_MAX)

        await self._database.write(begin)
        log.info("signed_in", agent=agent)
        return self.cookies.with_token(token, self._terms.longest // SECOND)

    def _csrf(self, session_id: str) -> str:
        return hmac.new(self._secret, f"csrf.{session_id}".encode(), hashlib.sha256).hexdigest()


def _hash_of(token: str) -> str:
    """The stored hash of a token or code, which are random as keys are."""
    return keys.hash_of(token.encode())
