"""A test under way: its steps, one after the other, against a session of any transport.

Nothing here knows a protocol's methods: the test says what is sent and expected.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from comply.files import Case
from comply.matching import at, look_up, matches
from comply.record import (
    Frame,
    Kind,
    Nearest,
    answered_otherwise,
    expected_of,
    meet,
    nearest,
)
from comply.result import Finding, NotApplicable
from comply.target import CaseSession
from comply.template import fill, fill_pattern, text_of
from schemas.jsont import Expect, ExpectedMessage, Forbid, JsonObject, JsontStep

RETRY_SECONDS = 0.1
ANSWER_SECONDS = 30.0
"""How long each request may stay unanswered once all steps are done."""


class CaseExecution:
    """Executes the steps of one test."""

    def __init__(
        self, case: Case, session: CaseSession, limit: asyncio.Timeout, patience: float
    ) -> None:
        self.limit = limit
        self.patience = patience
        self.test = case.test
        self.session = session
        self.record = session.record
        self.met = 0
        self.asked: list[tuple[JsonValue, bool]] = []
        """The id of each request, and whether an error should answer it."""
        self.since = 0
        """Where the frames begin that came after the test's latest step or matched message."""
        self.latest: tuple[JsontStep, int] | None = None
        """The request that a window may repeat, and where its frames begin."""

    async def run(self) -> None:
        """Raises Finding, NotApplicable, HarnessError."""
        try:
            await self.session.start()
            await self.steps()
        except (Finding, NotApplicable):
            self.weigh()
            raise
        self.weigh()

    def weigh(self) -> None:
        """Raise what the whole transcript shows, whatever the steps met: Finding, NotApplicable."""
        if self.record.flooded is not None:
            raise Finding(self.record.flooded)
        for frame in self.record.frames:
            if frame.refusal is not None:
                raise NotApplicable(frame.refusal)

    async def steps(self) -> None:
        for step in self.test.steps:
            if step.expect is not None:
                await self.expect(step.expect)
                continue
            if step.forbid is not None:
                await self.forbid(step.forbid)
            elif step.delay_ms is not None:
                await asyncio.sleep(step.delay_ms / 1000)
            else:
                self.since = len(self.record.frames)
                if step.send is not None:
                    self.note(step.send)
                self.latest = step, self.since
                await self.session.act(step)
                continue
            self.since = len(self.record.frames)
        await self.settle()

    def note(self, frame: JsonObject) -> None:
        """Remember a request's id, and whether an error should answer it."""
        id = fill(frame.get("id"), self.session.variables)
        if id is not None:
            self.asked.append((id, frame.get("expectError") is True))

    def filled(self, messages: Sequence[ExpectedMessage]) -> list[tuple[Kind, JsonValue]]:
        """The kind and the partial message of each, with variables filled in."""
        return [
            (kind, fill_pattern(fields, self.session.variables))
            for kind, fields in map(expected_of, messages)
        ]

    async def expect(self, window: Expect) -> None:
        wanted = self.filled(window.messages)

        def heard() -> list[Frame]:
            return self.record.open(self.start if window.fresh else 0)

        def met_now() -> Mapping[int, Frame]:
            return meet(wanted, heard())

        def whole() -> bool:
            return len(met_now()) == len(wanted)

        asking = window.na_unless is not None or window.na_if is not None

        def over() -> bool:
            enough = bool(met_now()) if asking else whole()
            return enough or answered_otherwise(wanted, met_now(), heard())

        await self.wait(window, over, whole)
        met = met_now()
        if asking:
            self.applies(window, met)
            return
        before = heard()
        for place, frame in met.items():
            frame.matched = True
            if frame.refusal is not None and _names_its_code(wanted[place][1], frame.message):
                frame.refusal = None
        for number, frame in enumerate(self.record.frames, 1):
            if any(frame is met_frame for met_frame in met.values()):
                self.since = max(self.since, number)
        self.met += len(met)
        for place, (kind, partial) in enumerate(wanted):
            if place not in met:
                near = nearest(kind, partial, before)
                raise Finding(self._unmet(kind, window, near), near)
        self.keep(window, met)

    @property
    def start(self) -> int:
        """Where the frames begin that came after the latest step that acted."""
        return self.latest[1] if self.latest is not None else 0

    def applies(self, window: Expect, met: Mapping[int, Frame]) -> None:
        """Decide by `naUnless` and `naIf` whether the test applies. Raises NotApplicable."""
        if met and window.na_if is not None:
            raise NotApplicable(window.na_if)
        if window.na_unless is None or (not met and self.record.ended is not None):
            return
        try:
            self.keep(window, met)
        except Finding:
            raise NotApplicable(window.na_unless) from None
        if not met:
            raise NotApplicable(window.na_unless)

    def keep(self, window: Expect, met: Mapping[int, Frame]) -> None:
        """Capture values into variables. Raises Finding when no matched message has one."""
        for capture in window.captures:
            self.session.variables[capture.var] = _captured(capture.path, met)

    async def wait(self, window: Expect, done: Callable[[], bool], met: Callable[[], bool]) -> None:
        """Wait until `done` or the end of the window.

        Of a request that is repeated, only the frames of the last attempt stay.
        """
        deadline = time.monotonic() + window.timeout_ms / 1000
        await self.record.until(done, window.timeout_ms / 1000)
        while not met() and self.latest is not None and self.record.ended is None:
            step, start = self.latest
            later = self._asked_to_wait(start)
            if later:
                # The subject asked for this delay, so it does not count against the test.
                self.patience -= later
                deadline += later
                self.limit.reschedule((self.limit.when() or 0) + later)
            elif not window.retry or time.monotonic() >= deadline:
                return
            await asyncio.sleep(later or RETRY_SECONDS)
            del self.record.frames[start:]
            await self.session.act(step)

    def _asked_to_wait(self, start: int) -> float:
        """Seconds after which the subject wants the latest request repeated; 0 when it names none,
        or more than `patience` allows."""
        asked = max(
            (_retry_after(frame.message) for frame in self.record.frames[start:]), default=0
        )
        return asked if asked <= self.patience else 0

    def _unmet(self, kind: Kind, window: Expect, near: Nearest) -> str:
        if near.mismatches:
            error = at(near.message, "error") if kind == "response" else None
            refused = at(near.expected, "error") is None and error is not None
            came = f"; the answer is an error: {_message(error)}" if refused else ""
            return f"{near.mismatches[0]}{came}"
        if self.record.ended is not None:
            return f"no {kind} came: {self.record.ended}"
        waited = f"within {window.timeout_ms:g} ms" if self.record.unasked else "in the answer"
        return f"no {kind} came {waited}"

    async def forbid(self, window: Forbid) -> None:
        unwanted = self.filled(window.messages)
        start = 0 if window.from_start else self.since
        latest = 0 if window.from_start else self.start

        def violations() -> Iterator[str]:
            for frame in self.record.frames[latest:] if unwanted else ():
                if any(
                    frame.kind == kind and matches(partial, frame.message)
                    for kind, partial in unwanted
                ):
                    yield f"said what it must not: {text_of(frame.message)[:120]}"
            for frame in self.record.frames[start:]:
                method = _method(frame.message)
                if frame.sent:
                    continue
                if method in window.methods:
                    yield f"sent {method}, which it must not"
                if frame.kind == "other" and window.stray_lines:
                    yield f"wrote a line that is not a message: {text_of(frame.message)[:120]}"

        await self.record.until(lambda: any(violations()), window.timeout_ms / 1000)
        if (violation := next(violations(), None)) is not None:
            raise Finding(violation)
        if self.record.ended is not None:
            raise Finding(f"the window could not be watched to its end: {self.record.ended}")

    async def settle(self) -> None:
        """Check that each request has an answer, and an error only where one was expected."""
        for id, wrong in self.asked:
            await self.record.until(lambda id=id: self._answer(id) is not None, ANSWER_SECONDS)  # type: ignore[misc]
            answer = self._answer(id)
            if answer is None:
                why = self.record.ended or "the test is over"
                raise Finding(f"request {text_of(id)} is never answered: {why}")
            error = answer.message.get("error") if isinstance(answer.message, dict) else None
            if wrong and error is None:
                raise Finding(
                    f"request {text_of(id)} is answered by a result where an error was expected"
                )
            if not wrong and error is not None and not answer.matched:
                raise Finding(f"request {text_of(id)} is answered by an error: {_message(error)}")

    def _answer(self, id: JsonValue) -> Frame | None:
        """The latest response with this id, of the same type."""
        for frame in reversed(self.record.frames):
            message = frame.message
            if frame.kind == "response" and not frame.sent and isinstance(message, dict):
                answered_id = message.get("id")
                if answered_id == id and type(answered_id) is type(id):
                    return frame
        return None


def _names_its_code(expected: JsonValue, answer: JsonValue) -> bool:
    """Whether an expectation accepts this error's code and no other."""
    assert isinstance(answer, dict)
    error = answer.get("error")
    other = {**answer, "error": {**(error if isinstance(error, dict) else {}), "code": -32603}}
    return not matches(expected, other)


def _captured(path: str, met: Mapping[int, Frame]) -> JsonValue:
    for frame in met.values():
        try:
            return look_up(frame.message, path)
        except KeyError:
            continue
    raise Finding(f"no matched message has {path}")


def _method(message: JsonValue) -> JsonValue:
    return message.get("method") if isinstance(message, dict) else None


def _retry_after(message: JsonValue) -> float:
    """Seconds in `error.data.retryAfter`; 0 when there is none."""
    try:
        after = look_up(message, "error.data.retryAfter")
    except KeyError:
        return 0
    return float(after) if isinstance(after, int | float) else 0


def _message(error: JsonValue) -> str:
    if not isinstance(error, dict):
        return str(error)
    return f"{error.get('code')} {error.get('message')}"
