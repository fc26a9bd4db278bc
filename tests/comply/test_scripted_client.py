"""How the client's side of a session answers an agent."""

import asyncio
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from comply.providers import Providers
from comply.scripted_client import ScriptedClient
from comply.scripted_replies import ScriptedReply
from comply.template import UnknownVariable

REQUEST: Any = {"jsonrpc": "2.0", "id": 7, "method": "_ask"}
ASKED: Any = {"method": "_ask"}


def answers(folder: Path, replies: list[ScriptedReply], steps: int = 0) -> list[Any]:
    """What the client writes and reports as an error of the test when an agent asks twice."""
    seen: list[Any] = []

    async def write(message: JsonValue) -> None:
        seen.append(message)

    async def session() -> None:
        client = ScriptedClient(
            replies, Providers(folder, {}, "none", "marker"), {"word": "yes"}, write, seen.append
        )
        client.take(REQUEST)
        client.take(REQUEST)
        await asyncio.sleep(0)
        for _ in range(steps):
            await client.answer_held()
        await client.close()

    asyncio.run(session())
    return seen


def test_each_reply_is_used_once_and_then_the_provider_answers(tmp_path: Path) -> None:
    first, second = answers(tmp_path, [ScriptedReply(ASKED, {"result": "${word}"})])
    assert first == {"jsonrpc": "2.0", "id": 7, "result": "yes"}
    assert second["error"]["code"] == -32601


def test_a_late_reply_waits_for_a_step(tmp_path: Path) -> None:
    late = [ScriptedReply(ASKED, {"result": number}, late=True) for number in (1, 2)]
    assert answers(tmp_path, list(late)) == []
    assert [answer["result"] for answer in answers(tmp_path, late, steps=2)] == [1, 2]


def test_an_unknown_variable_is_an_error_of_the_test(tmp_path: Path) -> None:
    replies = [ScriptedReply(ASKED, {"result": "${nothing}"}) for _ in range(2)]
    assert all(isinstance(error, UnknownVariable) for error in answers(tmp_path, replies))
