"""Waiting for the first of several things to happen."""

import asyncio
from typing import Protocol


class Happens(Protocol):
    """An event of asyncio or of anyio."""

    async def wait(self) -> object: ...


async def first(*happens: Happens, seconds: float) -> None:
    """Return once one of them has happened, or after so many seconds."""
    waits = [asyncio.ensure_future(one.wait()) for one in happens]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
