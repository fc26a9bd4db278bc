"""Sessions over a real file, with a clock that the test sets."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from peers.timekeeper import Timekeeper
from server.auth.authenticator import Authenticator
from server.domain.agents import identity
from server.domain.bans import BanStatement
from server.domain.errors import Refusal, Unauthenticated
from server.domain.page_session import GRACE, LINK_SECONDS, RENEWED_EVERY, SECOND
from server.http.admission import Admission
from server.http.rate_limit import RateLimit
from server.page.sessions import PageSessions
from server.page.viewer import Viewer
from server.settings import Settings
from server.store import bans, keys
from server.store.database import Database
from server.store.stamps import Stamps
from server.util.log_once import RateLimitedLog
from tests.support.located import location_of, prepare

BEGIN = 1_800_000_000 * SECOND
HOUR = 3600 * SECOND
YEAR = 365 * 24 * HOUR
SECRET = b"secret" * 8
ORIGIN = {"host": "cacp.example", "origin": "https://cacp.example"}


class SetClock(Timekeeper):
    """A clock that stands until a test sets it."""

    time = BEGIN

    def now(self) -> int:
        return self.time

    def sure(self) -> int:
        return self.time


class Desk:
    """A node's sessions, and one browser."""

    def __init__(self, database: Database, clock: SetClock, settings: Settings) -> None:
        self.database, self.clock = database, clock
        authenticator = Authenticator(settings, SECRET)
        admission = Admission(authenticator, database.read, RateLimit(0), RateLimitedLog())
        self.sessions = PageSessions(settings, database, admission, SECRET)
        self.cookie = ""

    def request(self, cookie: str | None = None, **headers: str) -> Request:
        given = ORIGIN | headers | {"cookie": self.cookie if cookie is None else cookie}
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        scope = {"type": "http", "method": "GET", "path": "/ui", "headers": raw, "client": None}
        return Request(scope | {"query_string": b""})

    async def key(self, agent: str = "aid://example.com/hugh", **more: Any) -> str:
        key = keys.new_key()
        await self.database.write(
            lambda to: keys.add(
                to.connection, key, agent_id=agent, repo="", human=True, now=1, **more
            )
        )
        return key

    async def sign_in(self, key: str) -> str:
        set_cookie = await self.sessions.sign_in(self.request(), key)
        self.cookie = set_cookie.partition(";")[0]
        return self.cookie

    async def look(self, cookie: str | None = None, *, take: bool = True) -> Viewer | None:
        """The viewer that comes in with a cookie; None for nobody."""
        try:
            viewer = await self.sessions.enter(self.request(cookie))
        except Unauthenticated:
            return None
        if viewer.cookie is not None and take:
            self.cookie = viewer.cookie.partition(";")[0]
        return viewer


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[Desk], Awaitable[None]]], None]:
    """Runs a story of a desk."""

    async def whole(story: Callable[[Desk], Awaitable[None]]) -> None:
        settings = Settings(db=tmp_path / "cacp.db", public_url="https://cacp.example")
        prepared = prepare(settings.db)
        stamps, clock = Stamps(), SetClock()
        stamps.clock = clock
        database = Database(location_of(settings.db), "NORMAL", stamps)
        await database.open(prepared.last_stamp)
        try:
            await story(Desk(database, clock, settings))
        finally:
            await database.close()

    return lambda story: asyncio.run(whole(story))


Run = Callable[[Callable[[Desk], Awaitable[None]]], None]


def test_a_session_lives_by_use_and_for_twelve_hours(run: Run) -> None:
    async def story(desk: Desk) -> None:
        await desk.sign_in(await desk.key())
        for _ in range(11):
            desk.clock.time += HOUR
            viewer = await desk.look()
            assert viewer is not None
            assert viewer.expires_at == BEGIN + 12 * HOUR
        desk.clock.time += HOUR
        assert await desk.look() is None
        desk.clock.time = BEGIN
        assert await desk.look() is None

    run(story)


def test_a_session_ends_without_use(run: Run) -> None:
    async def story(desk: Desk) -> None:
        await desk.sign_in(await desk.key())
        desk.clock.time += 2 * HOUR
        assert await desk.look() is None

    run(story)


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_clock_that_jumps_ends_sessions_and_never_lengthens_them(run: Run, jump: int) -> None:
    async def story(desk: Desk) -> None:
        key = await desk.key()
        await desk.sign_in(key)
        link = await desk.sessions.make_link(desk.request(authorization=f"Bearer {key}"))
        desk.clock.time += jump
        assert await desk.look() is None
        with pytest.raises(Unauthenticated):
            await desk.sessions.open_link(desk.request(), link.code)

    run(story)


def test_the_token_is_renewed_and_concurrent_requests_go_on(run: Run) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.sign_in(await desk.key())
        before = await desk.look()
        desk.clock.time += RENEWED_EVERY
        viewers = await asyncio.gather(*(desk.look(first, take=False) for _ in range(5)))
        cookies = [viewer.cookie for viewer in viewers if viewer and viewer.cookie]
        assert None not in viewers
        assert len(cookies) == 1, "one of them renews it"
        second = cookies[0].partition(";")[0]
        assert second != first
        assert "Max-Age=42300" in cookies[0]
        after = await desk.look(second)
        assert before is not None
        assert after is not None
        assert after.csrf == before.csrf, "forms of open pages go on"
        desk.clock.time += GRACE
        assert await desk.look(first) is None, "a token that was renewed comes back"
        assert await desk.look(second) is None, "and ends the session, which may be stolen"

    run(story)


def test_a_lost_response_signs_nobody_out(run: Run) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.sign_in(await desk.key())
        desk.clock.time += RENEWED_EVERY
        assert await desk.look(first, take=False) is not None
        desk.clock.time += GRACE
        viewer = await desk.look(first)
        assert viewer is not None
        assert viewer.cookie is not None
        assert await desk.look() is not None

    run(story)


def test_an_open_stream_ends_with_its_session(run: Run) -> None:
    async def story(desk: Desk) -> None:
        key = await desk.key()
        await desk.sign_in(key)
        request = desk.request()
        viewer = await desk.sessions.enter(request)
        desk.clock.time += RENEWED_EVERY
        await desk.look()
        await desk.sessions.recheck(request, viewer)
        hashed = keys.hash_of(key.encode())
        ((key_id,),) = await desk.database.read(
            lambda db: db.execute("SELECT key_id FROM keys WHERE hash = ?", (hashed,)).fetchall()
        )
        await desk.database.write(lambda to: keys.revoke(to.connection, key_id, now=1))
        with pytest.raises(Refusal) as refusal:
            await desk.sessions.recheck(request, viewer)
        assert refusal.value.data["reason"] == "revoked_key"
        assert await desk.look() is None
        with pytest.raises(Refusal) as refusal:
            await desk.sessions.recheck(request, viewer)
        assert refusal.value.data["reason"] == "session_ended"

    run(story)


def test_an_agent_has_twenty_sessions_at_most(run: Run) -> None:
    async def story(desk: Desk) -> None:
        key, cookies = await desk.key(), []
        for _ in range(21):
            desk.clock.time += 1
            desk.cookie = ""
            cookies.append(await desk.sign_in(key))
        assert await desk.look(cookies[0]) is None
        assert await desk.look(cookies[1]) is not None

    run(story)


def test_a_link_is_valid_for_a_minute(run: Run) -> None:
    async def story(desk: Desk) -> None:
        headers = {"authorization": f"Bearer {await desk.key()}"}
        late, soon = [await desk.sessions.make_link(desk.request(**headers)) for _ in range(2)]
        desk.clock.time += LINK_SECONDS * SECOND - 1
        assert await desk.sessions.open_link(desk.request(), soon.code)
        desk.clock.time += 1
        with pytest.raises(Unauthenticated, match="opened before or is older"):
            await desk.sessions.open_link(desk.request(), late.code)

    run(story)


def test_expired_sessions_are_swept_when_somebody_signs_in(run: Run) -> None:
    async def story(desk: Desk) -> None:
        await desk.sign_in(await desk.key())
        desk.clock.time += 12 * HOUR
        desk.cookie = ""
        await desk.sign_in(await desk.key("aid://example.com/ida"))
        rows = await desk.database.read(
            lambda db: db.execute("SELECT agent FROM page_sessions").fetchall()
        )
        assert rows == [("aid://example.com/ida",)]

    run(story)


def test_a_banned_agent_is_signed_out(run: Run) -> None:
    async def story(desk: Desk) -> None:
        await desk.sign_in(await desk.key())
        assert await desk.look() is not None
        own = "aid://localhost/local@1.0.0"
        ban = BanStatement(identity(own), "aid://example.com/hugh", None, True, BEGIN, "r")
        await desk.database.write(lambda to: bans.put(to.connection, ban))
        assert await desk.look() is None

    run(story)
