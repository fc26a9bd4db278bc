"""Which tests need a turn to end, and when one has."""

import asyncio
import json
from typing import Any

import pytest

from comply.open_turns import Turns, left_open, needs_turn
from comply.record import Frame, kind_of
from comply.result import Finding
from comply.source import read
from schemas.jsont import ComplianceTest

PROMPT = {"id": 1, "method": "session/prompt", "params": {"sessionId": "s"}}
IDLE = {"method": "session/update", "params": {"sessionId": "s", "update": {"state": "idle"}}}
OTHERS_IDLE = {
    "method": "session/update",
    "params": {"sessionId": "t", "update": {"state": "idle"}},
}


def made(*steps: Any) -> ComplianceTest:
    return read(json.dumps({"title": "t", "severity": "required", "steps": steps}))


def sent(*messages: Any) -> list[Any]:
    return [{"send": message} for message in messages]


def refused(id: int) -> Any:
    return {"expect": {"messages": [{"response": {"id": id, "error": {"code": "."}}}]}}


CANCEL = {"method": "session/cancel", "params": {"sessionId": "s"}}


@pytest.mark.parametrize(
    ("steps", "needs"),
    [
        (sent(PROMPT), True),
        (sent(CANCEL, PROMPT), True),
        (sent(PROMPT, CANCEL), False),
        (sent(PROMPT, CANCEL, PROMPT), False),
        (sent({"id": 1, "method": "session/list"}), False),
        ([*sent(PROMPT), refused(1)], False),
        ([*sent(PROMPT), refused(2)], True),
        (sent({**PROMPT, "expectError": True}), False),
    ],
)
def test_a_test_needs_a_turn_that_ends_by_itself(steps: list[Any], needs: bool) -> None:
    assert needs_turn(made(*steps)) is needs


def frames(*messages: Any) -> list[Frame]:
    """Requests are ours, all else is the agent's."""
    return [Frame(0, "id" in one and "method" in one, kind_of(one), one) for one in messages]


ANSWER, ERROR = {"id": 1, "result": {}}, {"id": 1, "error": {"code": -1}}


@pytest.mark.parametrize(
    ("version", "said", "is_open"),
    [
        (1, [PROMPT], True),
        (1, [PROMPT, ANSWER], False),
        (1, [PROMPT, {"id": 2, "result": {}}], True),
        (1, [PROMPT, ERROR], False),
        (1, [ANSWER], False),
        (1, [PROMPT, ANSWER, {**PROMPT, "id": 2}], True),
        (2, [PROMPT, ANSWER], True),
        (2, [PROMPT, ERROR], False),
        (2, [PROMPT, ANSWER, IDLE], False),
        (2, [PROMPT, ANSWER, OTHERS_IDLE], True),
        (2, [IDLE, PROMPT, ANSWER], True),
    ],
)
def test_a_turn_is_open_until_it_ends(version: int, said: list[Any], is_open: bool) -> None:
    assert left_open(version, frames(*said)) is is_open


def test_who_ends_a_turn_is_doubted_no_more_and_a_plain_prompt_is_put_once() -> None:
    asked: list[str | None] = []

    def answers(*given: str | None) -> Any:
        left = list(given)

        async def ask() -> str | None:
            asked.append(left[0])
            return left.pop(0)

        return ask

    async def course() -> None:
        turns, test = Turns(), made(*sent(PROMPT))
        ask = answers(None, "last words")
        await turns.check(test, ask, 1)
        turns.note("a", test, frames(PROMPT))
        turns.note("b", test, frames(PROMPT, ANSWER))
        await turns.check(test, ask, 1)
        assert asked == [], "another turn has ended since"
        turns.note("c", test, frames(PROMPT))
        await turns.check(made({"delayMs": 0}), ask, 1)
        await turns.check(test, ask, 1)
        assert asked == [None], "a plain prompt was answered"
        turns.note("d", test, frames(PROMPT))
        found = await asyncio.gather(
            *(turns.check(test, ask, 1) for _ in range(3)), return_exceptions=True
        )
        assert asked == [None, "last words"]
        assert {str(one) for one in found} == {
            "session/prompt is never answered: not in d, and a plain one not within 1 s"
        }
        assert isinstance(turns.silence, Finding)
        assert turns.silence.log == "last words"

    asyncio.run(course())
