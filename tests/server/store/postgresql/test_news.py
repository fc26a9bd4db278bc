"""Another replica's writes become known: by a notification, and without one soon after."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl
from server.store.postgresql import news
from server.store.postgresql.news import NewsFeed
from tests.support.postgresql import database, execute
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    """A database with a node's tables."""
    with database() as made:
        yield made


class Told:
    """How often a feed has told its replica, `own`, that there may be news."""

    def __init__(self, url: DatabaseUrl, *, listens: bool = True) -> None:
        self.times = 0
        self._url = url
        self.feed = NewsFeed(url, "own", self._look, self._count, listens=listens)

    async def _look(self) -> int:
        [[stamp]] = await asyncio.to_thread(execute, self._url, "SELECT stamp FROM cluster")
        return int(stamp)

    def _count(self) -> None:
        self.times += 1


async def test_a_notification_of_another_replica_is_told(url: DatabaseUrl) -> None:
    told = Told(url)
    turns = told.feed.listen_loop()
    await anext(turns)
    assert told.times == 1, "what was written before it listened"
    listening = asyncio.ensure_future(anext(turns))
    # In one transaction, so that both are there at once.
    await notify(url, "own", "other")
    await until(lambda: told.times > 1)
    assert told.times == 2, "its own is none"
    listening.cancel()
    await asyncio.wait([listening])


async def notify(url: DatabaseUrl, *replicas: str) -> None:
    sent = ", ".join(f"pg_notify('cacp', '{replica}')" for replica in replicas)
    await asyncio.to_thread(execute, url, f"SELECT {sent}")


async def test_a_cut_connection_is_a_database_that_is_away(url: DatabaseUrl) -> None:
    turns = Told(url).feed.listen_loop()
    await anext(turns)
    listening = asyncio.ensure_future(anext(turns))
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN cacp'"
    await asyncio.to_thread(execute, url, cut)
    with pytest.raises(Unavailable) as refusal:
        await listening
    assert refusal.value.data["reason"] == "storage_away"


@pytest.mark.parametrize("listens", [True, False])
async def test_the_last_stamp_is_looked_at_without_a_notification(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    monkeypatch.setattr(news, "POLL_UNHEARD_SECONDS", 0.01)
    told = Told(url, listens=listens)
    turns = told.feed.poll_loop()
    await anext(turns)
    assert told.times == 0
    await asyncio.to_thread(execute, url, "UPDATE cluster SET stamp = 7")
    await told_within(turns.__anext__, lambda: told.times == 1)
    await anext(turns)
    assert told.times == 1


async def told_within(turn: Callable[[], Awaitable[object]], holds: Callable[[], bool]) -> None:
    """Take turns until it holds."""
    while not holds():
        await turn()
