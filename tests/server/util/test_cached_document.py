"""Documents that are made once (design §6: public ones cost their callers nothing to ask for)."""

import asyncio
import threading

import pytest

from server.util.cached_document import CachedDocument
from tests.support.node import Node


def test_a_document_is_made_once_and_off_the_event_loop() -> None:
    made: list[threading.Thread] = []

    def make() -> bytes:
        made.append(threading.current_thread())
        return b"text"

    async def ask() -> list[bytes]:
        document = CachedDocument(make)
        return await asyncio.gather(*(document.get() for _ in range(10)))

    assert asyncio.run(ask()) == [b"text"] * 10
    assert len(made) == 1
    assert made[0] is not threading.main_thread()


def test_who_goes_away_takes_it_from_nobody() -> None:
    go_on = threading.Event()

    def make() -> bytes:
        go_on.wait(10)
        return b"text"

    async def ask() -> bytes:
        document = CachedDocument(make)
        first = asyncio.create_task(document.get())
        second = asyncio.create_task(document.get())
        await asyncio.sleep(0)
        first.cancel()
        go_on.set()
        return await second

    assert asyncio.run(ask()) == b"text"


def test_what_fails_is_tried_again() -> None:
    async def ask() -> bytes:
        tries = iter((OSError("no"), None))

        def make() -> bytes:
            if error := next(tries):
                raise error
            return b"text"

        document = CachedDocument(make)
        with pytest.raises(OSError, match="no"):
            await document.get()
        return await document.get()

    assert asyncio.run(ask()) == b"text"


def test_descriptions_of_a_node_are_the_same_bytes_each_time(node: Node) -> None:
    for path in ("/methods?verbose=1", "/openrpc.json", "/methods", "/.well-known/agent.json"):
        first, second = node.get(path), node.get(path)
        assert first.status_code == 200
        assert first.content == second.content
