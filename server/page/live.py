"""Tells open pages that something has changed, so that they look again.

One task reads `changes` for all of them. How often a page may look follows from what pages cost:
however many are open, they get a small share of the node's time.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import anyio

from server.domain.errors import RateLimited
from server.store import changes
from server.store.changes import Change
from server.store.database import Database
from server.util.loops import Loops, Turns
from server.util.service import Service
from server.util.wait_first import first

LOOK_SECONDS = 0.05
"""Between two looks at `changes`, at least."""
OUTSIDE_SECONDS = 5.0
"""How often the facts outside of `changes` are compared: who is awake, which peers are behind."""
SHARE = 0.04
"""The share of the node's time that live pages may take together under constant change."""
PAUSE_MIN, PAUSE_MAX = 0.2, 60.0
CHECK_SECONDS = 15.0
"""How often the stream of a page that hears of nothing checks whether its viewer may still look."""
PAGE = 500


@dataclass(frozen=True, slots=True)
class Interest:
    """The changes that a page shows: of these entities, in this project or in any that the caller
    may see (None: all)."""

    kinds: frozenset[str]
    project_id: str | None
    projects: frozenset[str] | None

    def takes(self, entity: str, project_id: str | None) -> bool:
        if entity not in self.kinds:
            return False
        if self.projects is not None and project_id not in self.projects:
            return False
        return self.project_id is None or project_id == self.project_id


@dataclass(eq=False, slots=True)
class OpenPage:
    """A page that is open now."""

    agent: str
    """Who looks at it."""
    interest: Interest
    changed: asyncio.Event = field(default_factory=asyncio.Event)


def pause(pages: int, seconds: float) -> float:
    """The seconds between two looks of a page, when `pages` are open that cost `seconds` each."""
    return min(PAUSE_MAX, max(PAUSE_MIN, pages * seconds / SHARE))


class LivePages(Service):
    """The open pages, and the task that tells them of changes.

    `outside` returns what pages show beside the database; when it differs, all look again.
    """

    def __init__(
        self,
        database: Database,
        loops: Loops,
        most: int,
        outside: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(loops)
        self._database = database
        self._most = most
        self._outside = outside
        self._open: set[OpenPage] = set()
        self._opened = asyncio.Event()
        self._seq = 0
        self._compiled: set[str] = set()
        self.cost = 0.0
        """Seconds that a page takes, on the average of the last ones."""

    @property
    def open(self) -> int:
        """How many pages are open."""
        return len(self._open)

    def spent(self, view: str, seconds: float) -> None:
        """Note what a page has cost. The first of a view says nothing: it compiled the template."""
        if view not in self._compiled:
            self._compiled.add(view)
        else:
            self.cost = seconds if not self.cost else 0.9 * self.cost + 0.1 * seconds

    async def start(self) -> None:
        self.run("live_pages", self._watch)

    def check_room(self, agent: str) -> None:
        """Raises RateLimited when the node has too many open pages, or one agent so many that few
        would be left for others."""
        own, share = sum(page.agent == agent for page in self._open), max(1, self._most // 2)
        for subject, count, most in (
            ("You have", own, share),
            ("The node has", len(self._open), self._most),
        ):
            if count >= most:
                raise RateLimited(
                    f"{subject} {count} open pages, which is the limit: close one", retryAfter=5
                )

    async def follow(
        self, agent: str, interest: Interest, after: int, stopping: anyio.Event
    ) -> AsyncGenerator[int | None, None]:
        """The newest seq, each time something has changed after `after` that the page shows; None
        after a while without, in which its viewer may have lost the right to look. Ends when the
        node stops."""
        page = OpenPage(agent, interest)
        await self._enter(page)
        try:
            if await self._has_changed(interest, after):
                page.changed.set()
            while not stopping.is_set():
                await first(page.changed, stopping, seconds=CHECK_SECONDS)
                if not page.changed.is_set():
                    yield None
                else:
                    page.changed.clear()
                    yield await self._database.read(changes.newest)
                    await first(stopping, seconds=pause(len(self._open), self.cost))
        finally:
            self._open.discard(page)

    async def _enter(self, page: OpenPage) -> None:
        if not self._open:
            # Nobody has listened: what came before is the page's own to ask for.
            self._seq = await self._database.read(changes.newest)
        self._open.add(page)
        self._opened.set()

    async def _has_changed(self, interest: Interest, after: int) -> bool:
        page = await self._database.read(partial(changes.after, seq=after, limit=PAGE))
        return len(page) == PAGE or any(map(partial(_concerns, interest), page))

    async def _watch(self) -> Turns:
        outside, compared = self._outside(), time.monotonic()
        while True:
            if not self._open:
                self._opened.clear()
                await self._opened.wait()
            committed = self._database.next_commit
            page = await self._database.read(partial(changes.after, seq=self._seq, limit=PAGE))
            if page:
                self._seq = page[-1].seq
                self._tell(Counter((change.entity, change.project_id) for change in page))
            if time.monotonic() - compared >= OUTSIDE_SECONDS:
                before, outside, compared = outside, self._outside(), time.monotonic()
                if before != outside:
                    for listener in self._open:
                        listener.changed.set()
            yield None
            if len(page) < PAGE:
                await first(committed, seconds=OUTSIDE_SECONDS)
                await asyncio.sleep(LOOK_SECONDS)
            else:
                await asyncio.sleep(0)

    def _tell(self, changed: Iterable[tuple[str, str | None]]) -> None:
        for page in self._open:
            if any(page.interest.takes(*each) for each in changed):
                page.changed.set()


def _concerns(interest: Interest, change: Change) -> bool:
    return interest.takes(change.entity, change.project_id)
