"""What a stream of events says."""

from typing import Any

from comply.model.conversation import Format, ModelAnswer, ModelRequest, OfferedTool, ToolCall

TEXT = ModelAnswer("Hello to you", wait=1)
TOOL = OfferedTool("read", {}, "files")
CALL = ModelAnswer(call=ToolCall("call_1", TOOL, {"path": "a"}))


def data(format: Format, asked: ModelRequest, answer: ModelAnswer) -> list[Any]:
    """The data of each event."""
    return [event[1] for event in format.events(asked, answer, "1") if event is not None]


def names(format: Format, asked: ModelRequest, answer: ModelAnswer) -> list[str]:
    return [event[0] for event in format.events(asked, answer, "1") if event is not None]


def waits_after(format: Format, asked: ModelRequest) -> int:
    """How many events come before the stream waits: some text must be among them."""
    events = list(format.events(asked, TEXT, "1"))
    assert "Hello" in str(events[: events.index(None)])
    assert "you" not in str(events[: events.index(None)])
    return events.index(None)
