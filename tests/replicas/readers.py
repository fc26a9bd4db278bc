"""Readers of the stream of changes, which resume at any replica where another one left them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from random import Random

import httpx
import orjson

from tests.replicas.account import ChangeRow

STAYS_SECONDS = 1.5
"""How long a reader stays at a replica, and waits there for a change, at most: it leaves in the
middle of a page too."""


class Reader:
    """Reads from the beginning, over any number of connections."""

    def __init__(
        self, name: str, dice: Random, urls: Sequence[str], http: httpx.AsyncClient
    ) -> None:
        self.name = name
        self.events: list[ChangeRow] = []
        self.connections = 0
        self.stopping = False
        self._dice = dice
        self._urls = urls
        self._http = http
        self._last = "0"

    @property
    def last(self) -> int:
        """The number of the last change that came."""
        return int(self._last.rpartition(":")[2])

    async def read(self) -> None:
        """Read until it is to stop."""
        while not self.stopping:
            url = self._dice.choice(self._urls)
            with suppress(httpx.TransportError):
                await self._read_from(url, self._dice.uniform(0.2, STAYS_SECONDS))
            await asyncio.sleep(self._dice.uniform(0, 0.05))

    async def _read_from(self, url: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        headers = {"last-event-id": self._last}
        async with self._http.stream(
            "GET", f"{url}/events", headers=headers, timeout=seconds
        ) as response:
            if response.status_code != 200:
                # It can't read its database just now.
                assert response.status_code == 503, response.status_code
                return
            self.connections += 1
            async for event_id, data in _events(response.aiter_lines()):
                self._last = event_id
                self.events.append(change_of(orjson.loads(data)))
                if time.monotonic() > until:
                    return


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """The id and the data of each event that came whole."""
    event: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
            continue
        if "data" in event:
            yield event["id"], event["data"]
        event = {}


def change_of(data: dict[str, str]) -> ChangeRow:
    return ChangeRow(
        int(data["seq"]),
        data["at"],
        data["actor"],
        data["action"],
        data["entity"],
        data["entityId"],
        data["outcome"],
    )
