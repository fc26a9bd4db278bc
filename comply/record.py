"""The transcript of a running test, and which of its messages meet an expectation."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from comply.matching import Mismatch, assign, differences, matches
from schemas.jsont import ExpectedMessage

Kind = Literal[
    "response", "notification", "clientRequest", "mcp", "http", "output", "other", "note"
]


@dataclass(slots=True)
class Frame:
    """One message, `sent` by the runner or received. `at`: milliseconds since the test began."""

    at: float
    sent: bool
    kind: Kind
    message: JsonValue
    matched: bool = False
    breach: str = ""
    """The protocol rule that it breaks; empty when it breaks none."""
    refusal: str | None = None
    """Its message, when it only demands a login, which is not evidence about other rules."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The message that came closest to an expectation, and its mismatches."""

    expected: JsonValue
    message: JsonValue
    mismatches: tuple[Mismatch, ...]


def kind_of(message: JsonValue) -> Kind:
    """The kind of a JSON-RPC message (JSON-RPC 2.0, §4 and §5)."""
    if not isinstance(message, dict):
        return "other"
    if "method" in message:
        return "clientRequest" if "id" in message else "notification"
    return "response" if "result" in message or "error" in message else "other"


def expected_of(message: ExpectedMessage) -> tuple[Kind, dict[str, JsonValue]]:
    """The kind and the partial message of an envelope."""
    if message.client_request is not None:
        partial = {key: item for key, item in message.client_request.items() if key != "reply"}
        return "clientRequest", partial
    if message.response is not None:
        return "response", message.response
    if message.notification is not None:
        return "notification", message.notification
    if message.mcp is not None:
        return "mcp", message.mcp
    if message.http is not None:
        return "http", message.http
    return "output", message.output or {}


MAX_MESSAGES = 40_000
"""How many messages one test may have, both sides together; more is a flood."""
MANY = 1_000
LOOKING_SHARE = 0.2
"""The share of a wait that may be spent on matching what came."""


@dataclass(slots=True)
class Transcript:
    """The frames of a running test. A received frame wakes waiters."""

    frames: list[Frame] = field(default_factory=list)
    unasked: bool = True
    """Whether the subject may send messages on its own; if not, there is nothing to wait for."""
    ended: str | None = None
    """Why nothing more will come, once that is known."""
    broken: Exception | None = None
    """What is wrong with the test itself, found while a message was received."""
    flooded: str | None = None
    """The limit that the subject exceeded, if it did."""
    _began: float = field(default_factory=time.monotonic)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _pause: float = 0

    def sent(self, message: JsonValue, kind: Kind | None = None) -> None:
        self._add(Frame(self._now(), True, kind or kind_of(message), message))

    def heard(
        self, message: JsonValue, kind: Kind | None = None, refusal: str | None = None
    ) -> None:
        frame = Frame(self._now(), False, kind or kind_of(message), message, refusal=refusal)
        self._add(frame)

    def end(self, reason: str) -> None:
        self.ended = self.ended or reason
        self._heard.set()

    def fail(self, error: Exception) -> None:
        self.broken = self.broken or error
        self._heard.set()

    def flood(self, reason: str) -> None:
        self.flooded = self.flooded or reason
        self.end(reason)

    def open(self, start: int = 0) -> list[Frame]:
        """Received frames from `start` on that have met no expectation yet."""
        return [frame for frame in self.frames[start:] if not frame.sent and not frame.matched]

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until `done`, until nothing more will come, or for `seconds` at most.

        Returns `done()`. Raises the error of the test, if it has one.
        """
        if not self.unasked:
            return done()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.broken is None and not self._looked(done) and self.ended is None:
                    self._heard.clear()
                    # With many messages each look takes longer, so looks become rarer.
                    await asyncio.sleep(self._pause)
                    await self._heard.wait()
        if self.broken is not None:
            raise self.broken
        return done()

    def _looked(self, done: Callable[[], bool]) -> bool:
        began = time.monotonic()
        met = done()
        took = time.monotonic() - began
        self._pause = took * (1 / LOOKING_SHARE - 1) if len(self.frames) > MANY else 0
        return met

    def _add(self, frame: Frame) -> None:
        if len(self.frames) >= MAX_MESSAGES:
            self.flood(f"more than {MAX_MESSAGES} messages came")
            return
        self.frames.append(frame)
        self._heard.set()

    def _now(self) -> float:
        return (time.monotonic() - self._began) * 1000


def meet(expected: Sequence[tuple[Kind, JsonValue]], frames: Sequence[Frame]) -> dict[int, Frame]:
    """Assigns frames to expectations, as many as possible; a frame meets one at most."""

    def fits(wanted: JsonValue, frame: Frame) -> bool:
        place = wanted if isinstance(wanted, int) else 0
        kind, partial = expected[place]
        return frame.kind == kind and matches(partial, frame.message)

    assigned = assign(list(range(len(expected))), frames, fits)
    return {wanted: frames[at] for wanted, at in assigned.items()}


def answered_otherwise(
    expected: Sequence[tuple[Kind, JsonValue]], met: Mapping[int, Frame], frames: Sequence[Frame]
) -> bool:
    """Whether an expected response can't come any more, because its id has another answer."""
    taken = {id(frame) for frame in met.values()}
    answers = [frame for frame in frames if frame.kind == "response" and id(frame) not in taken]
    for place, (kind, partial) in enumerate(expected):
        if kind != "response" or place in met or not isinstance(partial, dict):
            continue
        wanted = {name: item for name, item in partial.items() if name == "id"}
        if wanted and any(matches(wanted, frame.message) for frame in answers):
            return True
    return False


def nearest(kind: Kind, expected: JsonValue, frames: Sequence[Frame]) -> Nearest:
    """Of the frames of this kind, the one with the fewest mismatches; the latest of several."""
    best = Nearest(expected, None, ())
    for frame in frames:
        if frame.kind == kind:
            mismatches = tuple(differences(expected, frame.message))
            if not best.mismatches or len(mismatches) <= len(best.mismatches):
                best = Nearest(expected, frame.message, mismatches)
    return best
