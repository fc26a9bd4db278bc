"""Sending large bodies in pieces."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from starlette.types import Message, Receive, Send

from server.http.responses import PIECE, InPieces, respond


def sent(answer: Callable[[Send], Awaitable[None]]) -> tuple[list[bytes], int]:
    """The body's pieces, and how often others had their turns meanwhile."""
    pieces: list[bytes] = []
    turns = 0

    async def run() -> None:
        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                pieces.append(bytes(message.get("body", b"")))
                assert message.get("more_body", False) or not pieces[-1] or len(pieces) == 1

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        await answer(send)
        beside.cancel()

    asyncio.run(run())
    return pieces, turns


def test_a_large_answer_is_sent_in_pieces_with_turns_for_others_in_between() -> None:
    parts = [b"[", b"x" * (3 * PIECE), b",", *[b"y" * 1000] * 200, b"]"]
    pieces, turns = sent(lambda send: respond(send, 200, parts))
    assert b"".join(pieces) == b"".join(parts)
    assert max(map(len, pieces)) <= PIECE
    assert turns >= 6


def test_a_public_document_is_sent_in_pieces_too() -> None:
    document = b"d" * (4 * PIECE + 1)

    async def answer(send: Send) -> None:
        scope = {"type": "http", "method": "GET"}
        await InPieces(document)(scope, cast(Receive, None), send)

    pieces, turns = sent(answer)
    assert b"".join(pieces) == document
    assert max(map(len, pieces)) <= PIECE
    assert turns >= 4


def test_a_small_answer_is_sent_at_once() -> None:
    pieces, turns = sent(lambda send: respond(send, 200, b"{}"))
    assert (pieces, turns) == ([b"{}"], 0)
