"""What a stream of events says."""

from typing import Any

from comply.model.conversation import Answer, Asked, Call, Format, Tool

TEXT = Answer("Hello to you", wait=1)
TOOL = Tool("read", {}, "files")
CALL = Answer(call=Call("call_1", TOOL, {"path": "a"}))


def data(format: Format, asked: Asked, answer: Answer) -> list[Any]:
    """The data of each event."""
    return [event[1] for event in format.events(asked, answer, "1") if event is not None]


def names(format: Format, asked: Asked, answer: Answer) -> list[str]:
    return [event[0] for event in format.events(asked, answer, "1") if event is not None]


def waits_after(format: Format, asked: Asked) -> int:
    """How many events come before the stream waits: some text must be among them."""
    events = list(format.events(asked, TEXT, "1"))
    assert "Hello" in str(events[: events.index(None)])
    assert "you" not in str(events[: events.index(None)])
    return events.index(None)
