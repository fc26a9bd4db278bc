"""What no route has caught becomes an error with an id."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from server.http.last_resort import LastResort


async def receive() -> Message:
    return {"type": "http.request", "body": b""}


def answer_of(app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> list[Message]:
    """What LastResort sends around an application."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(LastResort(app)({"type": "http", "path": "/x"}, receive, send))
    return sent


def test_what_nobody_caught_becomes_an_id() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("secret detail")

    start, body = answer_of(broken)
    assert start["status"] == 500
    error = json.loads(body["body"])["error"]
    assert (error["code"], error["data"]["reason"]) == (-32000, "internal_error")
    assert error["data"]["id"] in error["message"]
    assert b"secret" not in body["body"]


def test_what_breaks_in_the_middle_of_an_answer_breaks_it_off() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        answer_of(broken)
