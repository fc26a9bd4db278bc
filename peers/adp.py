"""Client of an ADP exchange: search, register, and stay registered (CACP 2.0, ADP Integration)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from pydantic import ValidationError

from peers.outgoing import Answer, NoAnswer, Outgoing, said_against
from schemas.adp import Listing, Manifest, SearchRequest, to_wire

RETRY_FIRST = 1.0
RETRY_MAX = 300.0
RENEW = 3600.0
"""Seconds. An exchange of ours forgets who hasn't renewed for a day."""

log = structlog.get_logger()


class ExchangeError(Exception):
    """An exchange can't be used. The text is for people."""


class Exchange:
    """An ADP exchange at `url`, called with `key` if it wants one."""

    def __init__(self, outgoing: Outgoing, url: str, key: str | None = None) -> None:
        self._outgoing = outgoing
        self._url = url.rstrip("/")
        self._key = key

    async def search(self, request: SearchRequest) -> list[Listing]:
        """Who is found, in the exchange's order, at most `request.limit`.

        What is not a listing of an agent is passed over. Raises ExchangeError.
        """
        answer = await self._post("/v1/search/", to_wire(request))
        if not 200 <= answer.status < 300:
            raise ExchangeError(f"The exchange {said_against(answer)}")
        found = answer.body.get("results") if isinstance(answer.body, dict) else None
        if not isinstance(found, list):
            raise ExchangeError("The exchange answers a search with something else than results")
        return [listing for one in found[: request.limit] if (listing := _listing(one)) is not None]

    async def register(self, manifest: Manifest) -> None:
        """Enter or renew an agent. Raises ExchangeError when it is not listed afterwards."""
        answer = await self._post("/v1/register/", {"manifest": to_wire(manifest)})
        if 200 <= answer.status < 300 and _succeeded(answer.body):
            return
        if answer.status == 409 and await self._lists(manifest):
            return
        raise ExchangeError(f"The exchange {said_against(answer)}")

    async def _lists(self, manifest: Manifest) -> bool:
        """Whether the agent is listed as it is: some exchanges refuse whom they have already."""
        found = await self.search(SearchRequest(query=manifest.aid, limit=50))
        return any(
            one.aid == manifest.aid and one.manifest.endpoint == manifest.endpoint for one in found
        )

    async def _post(self, path: str, body: dict[str, Any]) -> Answer:
        try:
            return await self._outgoing.post(f"{self._url}{path}", body, key=self._key)
        except NoAnswer as error:
            raise ExchangeError(f"The exchange {error}") from None


class Registration:
    """Keeps the node registered: quietly, with one line in the log for each change of state."""

    def __init__(self, register: Callable[[], Awaitable[None]]) -> None:
        self._register = register
        self.registered: bool | None = None
        """None until the first attempt has ended."""

    async def run(self) -> None:
        """Register, renew, and try again when that fails, until cancelled."""
        failures = 0
        while True:
            try:
                await self._register()
            except ExchangeError as error:
                failures += 1
                self._tell(False, str(error))
                await asyncio.sleep(retry_after(failures, random.random()))  # noqa: S311
            else:
                failures = 0
                self._tell(True)
                await asyncio.sleep(renew_after(random.random()))  # noqa: S311

    def _tell(self, registered: bool, error: str = "") -> None:
        if registered == self.registered:
            return
        self.registered = registered
        if registered:
            log.info("adp_registered")
        else:
            log.warning("adp_not_registered", error=error)


def retry_after(failures: int, chance: float) -> float:
    """Seconds until the next attempt after so many failures in a row, `chance` being in [0, 1)."""
    longest: float = min(RETRY_MAX, RETRY_FIRST * 2 ** min(failures - 1, 30))
    return longest * (0.5 + chance / 2)


def renew_after(chance: float) -> float:
    """Seconds until the entry is renewed: nodes that started together drift apart."""
    return RENEW * (0.8 + chance * 0.4)


def _listing(value: object) -> Listing | None:
    try:
        return Listing.model_validate(value)
    except ValidationError:
        return None


def _succeeded(body: object) -> bool:
    return isinstance(body, dict) and body.get("success") is not False
