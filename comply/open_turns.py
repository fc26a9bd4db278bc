"""Detects agents that end no turn.

A test may wait long for the end of a turn, and with an agent that ends none each would wait for its
whole window. So after a test that left a turn open, a plain prompt precedes the next such test.
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
"""The steps of a prompt that any agent can answer."""


@dataclass(slots=True)
class Turns:
    """What is known about an agent's turns in one version of the protocol."""

    doubt: str = ""
    """The test that left a turn open, if none has ended since."""
    silence: Finding | None = None
    """The finding for every test that needs a turn, once the agent is known to end none."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def note(self, name: str, test: ComplianceTest, frames: Sequence[Frame]) -> None:
        """Learn from a test whose agent was still running at its end."""
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

        `ask` sends a plain prompt and waits `seconds`. It returns the agent's stderr when that turn
        stays open too, else None.
        """
        if not needs_turn(test):
            return
        async with self._asking:
            if self.doubt and self.silence is None:
                log = await ask()
                if log is None:
                    self.doubt = ""
                else:
                    proof = f"not in {self.doubt}, and a plain one not within {seconds:g} s"
                    self.silence = Finding(f"{_OPEN[test.protocol_version]}: {proof}", log=log)
        if self.silence is not None:
            raise self.silence


_OPEN = {
    1: "session/prompt is never answered",
    2: "session/prompt never comes to an end (idle)",
}


def needs_turn(test: ComplianceTest) -> bool:
    """Whether the test prompts and waits for the turn to end by itself.

    An agent that ends no turn may still obey a cancellation or refuse a wrong request.
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
        "error" in response and response.get("id") == prompt.get("id") for response in expected
    )


def left_open(version: int, frames: Sequence[Frame]) -> bool:
    """Whether a turn is open: version 1 ends it by its answer, version 2 by `idle` or an error."""
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
