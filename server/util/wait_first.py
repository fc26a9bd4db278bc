"""Waits for the first of several events."""

import asyncio
from typing import Protocol


class AnyEvent(Protocol):
    """An event of asyncio or of anyio."""

    async def wait(self) -> object: ...


async def first(*events: AnyEvent, seconds: float) -> None:
    """Return once one of the events is set, or after `seconds`."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
