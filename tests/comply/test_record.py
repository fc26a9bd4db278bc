"""What was said, and what of it meets an expectation."""

import asyncio
from functools import partial
from typing import Any

import pytest

from comply.record import (
    Transcript,
    expected_of,
    kind_of,
    meet,
    nearest,
)
from schemas.jsont import ExpectedMessage
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"id": 1, "result": None}, "response"),
        ({"id": None, "error": {}}, "response"),
        ({"method": "x"}, "notification"),
        ({"method": "x", "id": 0}, "clientRequest"),
        ({"id": 1}, "other"),
        ("text", "other"),
    ],
)
def test_the_kind_of_a_message(message: Any, kind: str) -> None:
    assert kind_of(message) == kind


def test_a_reply_is_no_part_of_what_is_expected() -> None:
    envelope = {"clientRequest": {"method": "x", "reply": {"content": "y"}}}
    kind, partial = expected_of(ExpectedMessage.model_validate(envelope))
    assert (kind, partial) == ("clientRequest", {"method": "x"})


def test_waiting_ends_when_something_is_heard_or_nothing_more_can_be() -> None:
    async def whole() -> None:
        record = Transcript()
        asyncio.get_running_loop().call_later(0.01, partial(record.heard, {"id": 1, "result": {}}))
        assert await record.until(lambda: len(record.open()) == 1, 10 * PATIENCE)
        asyncio.get_running_loop().call_later(0.01, record.end, "gone")
        assert not await record.until(lambda: False, 10 * PATIENCE)
        assert record.ended == "gone"
        assert not await Transcript(unasked=False).until(lambda: False, 10 * PATIENCE)
        assert not await Transcript().until(lambda: False, 0.01)

    asyncio.run(asyncio.wait_for(whole(), PATIENCE))


def test_expectations_are_met_by_the_right_frames_whatever_their_order() -> None:
    record = Transcript()
    record.sent({"id": 1, "method": "x"})
    record.heard({"id": 1, "result": {"a": 1}})
    record.heard({"id": 1, "result": {"a": 1, "b": 2}})
    met = meet([("response", {"id": 1}), ("response", {"result": {"b": 2}})], record.open())
    assert met == {0: record.frames[1], 1: record.frames[2]}
    near = nearest("response", {"id": 2, "result": {"b": 2}}, record.open())
    assert near.message == {"id": 1, "result": {"a": 1, "b": 2}}
    assert [str(one) for one in near.mismatches] == ["id: expected 2, got 1"]


def test_a_wait_looks_seldom_at_much_that_comes() -> None:
    """Each look at all of it, at each message, would take the square of its number."""

    async def whole() -> int:
        record, looks = Transcript(), 0

        def look() -> bool:
            nonlocal looks
            looks += 1
            return sum(map(bool, (frame.matched for frame in record.frames))) > 0

        waiting = asyncio.create_task(record.until(look, PATIENCE))
        for _ in range(20_000):
            record.heard({"method": "x"})
            await asyncio.sleep(0)
        record.end("gone")
        await waiting
        return looks

    assert asyncio.run(whole()) < 10_000
