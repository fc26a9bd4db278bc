"""Whether an agent ends its turns at all.

A test may wait long for a turn, and an agent that ends none would cost each its whole window. So
when one was left open, and none has ended since, a plain prompt is put before the next test waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from comply.matching import at
from comply.record import Frame
from comply.result import Finding
from schemas.jsont import ComplianceTest, JsonObject

PROMPT = "session/prompt"
CANCELLING = frozenset({"session/cancel", "session/close", "tool_call/cancel", "$/cancel_request"})
PLAIN: list[JsonValue] = [
    {"newSession": {}},
    {
        "send": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": PROMPT,
            "params": {
                "sessionId": "${sessionId}",
                "prompt": [{"type": "text", "text": "Say hello."}],
            },
        }
    },
]
"""The steps of a prompt that no agent should find hard."""


@dataclass(slots=True)
class Turns:
    """What is known of an agent's turns, in one version of the protocol."""

    doubt: str = ""
    """The test that left a turn open, if none has ended since."""
    silence: Finding | None = None
    """What every test is told that needs a turn, once the agent is known to end none."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def note(self, name: str, test: ComplianceTest, frames: Sequence[Frame]) -> None:
        """What a test showed whose agent was still there when it was over."""
        if not needs_turn(test):
            return
        if left_open(test.protocol_version, frames):
            self.doubt = name
        elif any(_is_prompt(frame) for frame in frames):
            self.doubt = ""

    async def check(
        self, test: ComplianceTest, ask: Callable[[], Awaitable[str | None]], seconds: float
    ) -> None:
        """Raises Finding when the test would wait in vain.

        `ask` puts a plain prompt, and waits `seconds`: what the agent wrote to stderr when it left
        that open too, None when it did anything else.
        """
        if not needs_turn(test):
            return
        async with self._asking:
            if self.doubt and self.silence is None:
                log = await ask()
                if log is None:
                    self.doubt = ""
                else:
                    said = f"not in {self.doubt}, and a plain one not within {seconds:g} s"
                    self.silence = Finding(f"{_OPEN[test.protocol_version]}: {said}", log=log)
        if self.silence is not None:
            raise self.silence


_OPEN = {
    1: "session/prompt is never answered",
    2: "session/prompt never comes to an end (idle)",
}


def needs_turn(test: ComplianceTest) -> bool:
    """Whether it prompts and waits for the turn to end by itself.

    An agent may be silent and yet obey a cancellation, or refuse what is wrong.
    """
    prompted = False
    for step in test.steps:
        method = step.send.get("method") if step.send is not None else None
        if prompted and method in CANCELLING:
            return False
        prompted |= step.send is not None and method == PROMPT and not _refused(test, step.send)
    return prompted


def _refused(test: ComplianceTest, prompt: JsonObject) -> bool:
    """Whether the test expects an error in answer to a prompt."""
    expected = (
        message.response
        for step in test.steps
        if step.expect is not None
        for message in step.expect.messages
        if message.response is not None
    )
    return prompt.get("expectError") is True or any(
        "error" in one and one.get("id") == prompt.get("id") for one in expected
    )


def left_open(version: int, frames: Sequence[Frame]) -> bool:
    """Whether a prompt's turn has not ended: by its answer, in version 2 by `idle` or an error."""
    return any(
        _is_prompt(frame) and not any(_ends(version, frame, later) for later in frames[place:])
        for place, frame in enumerate(frames)
    )


def _is_prompt(frame: Frame) -> bool:
    return (
        frame.sent and at(frame.message, "method") == PROMPT and at(frame.message, "id") is not None
    )


def _ends(version: int, prompt: Frame, frame: Frame) -> bool:
    if frame.sent:
        return False
    if frame.kind == "response" and at(frame.message, "id") == at(prompt.message, "id"):
        return version == 1 or at(frame.message, "error") is not None
    same = at(frame.message, "params.sessionId") == at(prompt.message, "params.sessionId")
    return version != 1 and same and at(frame.message, "params.update.state") == "idle"
