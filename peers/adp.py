"""Client of an ADP exchange: search, register, and stay registered (CACP 2.0, ADP Integration)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog
from pydantic import ValidationError

from peers.backoff import delay
from peers.client import HttpClient, refusal
from peers.errors import CallError, PeerRefused
from schemas.adp import AdpManifest, Listing, SearchRequest, to_wire

RETRY_FIRST = 1.0
RETRY_MAX = 300.0
RENEW = 3600.0
"""Seconds. An exchange that runs this software drops entries that were not renewed for a day."""

log = structlog.get_logger()


class ExchangeError(Exception):
    """An exchange can't be used. The text is for people."""


class AdpExchange:
    """An ADP exchange at `url`, called with `key` if it wants one."""

    def __init__(self, client: HttpClient, url: str, key: str | None = None) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._key = key

    async def search(self, request: SearchRequest) -> list[Listing]:
        """The agents found, in the exchange's order, at most `request.limit`.

        A result that is not a valid listing is skipped. Raises ExchangeError.
        """
        try:
            answer = await self._post("/v1/search/", to_wire(request))
        except CallError as error:
            raise ExchangeError(f"The exchange {error}") from None
        results = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(results, list):
            raise ExchangeError("The exchange answers a search without a list of results")
        return [
            listing
            for result in results[: request.limit]
            if (listing := _listing(result)) is not None
        ]

    async def register(self, manifest: AdpManifest) -> None:
        """Enter or renew an agent. Raises ExchangeError when it is not listed afterwards."""
        try:
            answer = await self._post("/v1/register/", {"manifest": to_wire(manifest)})
            if not _succeeded(answer):
                raise refusal(200, answer)
        except PeerRefused as refused:
            if refused.status != 409 or not await self._lists(manifest):
                raise ExchangeError(f"The exchange {refused}") from None
        except CallError as error:
            raise ExchangeError(f"The exchange {error}") from None

    async def _lists(self, manifest: AdpManifest) -> bool:
        """Whether the agent is listed at its endpoint: some exchanges refuse one that they have."""
        listings = await self.search(SearchRequest(query=manifest.aid, limit=50))
        return any(
            listing.aid == manifest.aid and listing.manifest.endpoint == manifest.endpoint
            for listing in listings
        )

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._client.post(f"{self._url}{path}", body, key=self._key)


class Registration:
    """Keeps the node registered, with one line in the log for each change of state."""

    def __init__(self, register: Callable[[], Awaitable[None]]) -> None:
        self._register = register
        self.registered: bool | None = None
        """None until the first attempt has ended."""

    async def run(self) -> AsyncIterator[None]:
        """Register, renew, and try again when that fails. Yields after each try; never ends."""
        failures = 0
        while True:
            try:
                await self._register()
            except ExchangeError as error:
                failures += 1
                self._tell(False, str(error))
                chance = random.random()  # noqa: S311 - no secret
                pause = delay(failures, chance, first=RETRY_FIRST, cap=RETRY_MAX)
            else:
                failures = 0
                self._tell(True)
                pause = renew_after(random.random())  # noqa: S311
            yield
            await asyncio.sleep(pause)

    def _tell(self, registered: bool, error: str = "") -> None:
        if registered == self.registered:
            return
        self.registered = registered
        if registered:
            log.info("adp_registered")
        else:
            log.warning("adp_not_registered", error=error)


def renew_after(chance: float) -> float:
    """Seconds until the entry is renewed, spread so that nodes don't all renew at once."""
    return RENEW * (0.8 + chance * 0.4)


def _listing(value: object) -> Listing | None:
    try:
        return Listing.model_validate(value)
    except ValidationError:
        return None


def _succeeded(body: object) -> bool:
    return isinstance(body, dict) and body.get("success") is not False
