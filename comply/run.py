"""Runs a test: its steps, one after the other, against a session of any transport.

Nothing here knows a protocol's methods: what is sent and expected stands in the test.
"""

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from pydantic import JsonValue

from comply.files import Case
from comply.matching import look_up
from comply.record import (
    Frame,
    Kind,
    Record,
    answered_otherwise,
    expected_of,
    meet,
    nearest,
)
from comply.result import Finding, NotApplicable, Result, Verdict
from comply.template import UnknownVariable, fill, fill_pattern, text_of
from schemas.jsont import ComplianceTest, Expect, Forbid, JsonObject, Step

RETRY_SECONDS = 0.1
PATIENCE_SECONDS = 300.0
"""How long, in one test, a subject that asks to be called later is waited for."""


class HarnessError(Exception):
    """Our own fault, or the test's: no word about the subject."""


class Unreachable(Exception):
    """Nothing answers where the subject should be, or it does not start."""


class Session(Protocol):
    """One test's connection to its subject. Everything said lands in `record`."""

    record: Record
    variables: dict[str, JsonValue]

    async def act(self, step: Step) -> None:
        """Do what a step says that is not the runner's own: send, request, run, newSession."""

    async def close(self) -> str:
        """Let go of the subject; what it said beside the protocol (stderr)."""


class Target(Protocol):
    """An agent or node under test."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> dict[str, str]: ...

    def missing(self, test: ComplianceTest) -> str | None:
        """Why this test can't be put to this target; None when it can."""

    async def open(self, case: Case) -> Session: ...

    async def learn(self) -> None:
        """Fill `facts`, once, before the first test."""

    async def close(self) -> None: ...


class Course:
    """A test under way."""

    def __init__(
        self, case: Case, session: Session, limit: asyncio.Timeout, patience: float
    ) -> None:
        self.limit = limit
        self.patience = patience
        self.test = case.test
        self.session = session
        self.record = session.record
        self.met = 0
        self.asked: list[JsonValue] = []
        self.errors_wanted: list[JsonValue] = []
        self.latest: tuple[Step, int] | None = None
        """The request that a window may repeat, and where its frames start."""

    async def run(self) -> None:
        """Raises Finding, NotApplicable, HarnessError."""
        for step in self.test.steps:
            if step.expect is not None:
                await self.expect(step.expect)
            elif step.forbid is not None:
                await self.forbid(step.forbid)
            elif step.delay_ms is not None:
                await asyncio.sleep(step.delay_ms / 1000)
            else:
                if step.send is not None:
                    self.note(step.send)
                self.latest = step, len(self.record.frames)
                await self.session.act(step)
        await self.settle()

    def note(self, frame: JsonObject) -> None:
        """Remember which request this is, and whether its answer should be an error."""
        id = fill(frame.get("id"), self.session.variables)
        (self.errors_wanted if frame.get("expectError") is True else self.asked).append(id)

    async def expect(self, window: Expect) -> None:
        wanted: list[tuple[Kind, JsonValue]] = []
        for message in window.messages:
            of, fields = expected_of(message)
            wanted.append((of, fill_pattern(fields, self.session.variables)))

        def found() -> Mapping[int, Frame]:
            return meet(wanted, self.record.open())

        def whole() -> bool:
            return len(found()) == len(wanted)

        asking = window.na_unless is not None or window.na_if is not None

        def over() -> bool:
            enough = bool(found()) if asking else whole()
            return enough or answered_otherwise(wanted, found(), self.record.open())

        await self.wait(window, over, whole)
        met = found()
        if asking:
            self.applies(window, bool(met))
            return
        heard = self.record.open()
        for frame in met.values():
            frame.matched = True
        self.met += len(met)
        for place, (kind, partial) in enumerate(wanted):
            if place not in met:
                near = nearest(kind, partial, heard)
                raise Finding(self._unmet(kind, window, near.mismatches), near)
        for capture in window.captures:
            self.session.variables[capture.var] = _captured(capture.path, met)

    def applies(self, window: Expect, met: bool) -> None:
        """Whether the test is about anything that the subject offers. Raises NotApplicable."""
        if met and window.na_if is not None:
            raise NotApplicable(window.na_if)
        if not met and window.na_unless is not None and self.record.ended is None:
            raise NotApplicable(window.na_unless)

    async def wait(self, window: Expect, done: Callable[[], bool], met: Callable[[], bool]) -> None:
        """Until `done` or the end of the window. A repeated request leaves its last frames only."""
        deadline = time.monotonic() + window.timeout_ms / 1000
        await self.record.until(done, window.timeout_ms / 1000)
        while not met() and self.latest is not None and self.record.ended is None:
            step, start = self.latest
            later = self._asked_to_wait(start)
            if later:
                # The subject has done nothing yet: its wait is not time that the test took.
                self.patience -= later
                deadline += later
                self.limit.reschedule((self.limit.when() or 0) + later)
            elif not window.retry or time.monotonic() >= deadline:
                return
            await asyncio.sleep(later or RETRY_SECONDS)
            del self.record.frames[start:]
            await self.session.act(step)

    def _asked_to_wait(self, start: int) -> float:
        """Seconds after which the latest request may come again; 0 when the subject names none, or
        more than there is patience for."""
        asked = max(
            (_retry_after(frame.message) for frame in self.record.frames[start:]), default=0
        )
        return asked if asked <= self.patience else 0

    def _unmet(self, kind: Kind, window: Expect, mismatches: tuple[object, ...]) -> str:
        if mismatches:
            return str(mismatches[0])
        if self.record.ended is not None:
            return f"no {kind} came: {self.record.ended}"
        waited = f"within {window.timeout_ms} ms" if self.record.unasked else "in the answer"
        return f"no {kind} came {waited}"

    async def forbid(self, window: Forbid) -> None:
        def seen() -> Iterator[str]:
            for frame in self.record.frames:
                method = _method(frame.message)
                if frame.sent:
                    continue
                if method in window.methods:
                    yield f"sent {method}, which it must not"
                if frame.kind == "other" and window.stray_lines:
                    yield f"wrote a line that is no message: {text_of(frame.message)[:120]}"

        await self.record.until(lambda: any(seen()), window.timeout_ms / 1000)
        for problem in seen():
            raise Finding(problem)
        if self.record.ended is not None:
            raise Finding(f"the window could not be watched to its end: {self.record.ended}")

    async def settle(self) -> None:
        """Answers that no expectation names: an error is a finding, unless it was asked for."""
        for wanted in self.errors_wanted:
            await self.record.until(lambda id=wanted: self._answer(id) is not None, 10)  # type: ignore[misc]
            answer = self._answer(wanted)
            if answer is None or "error" not in answer:
                what = "a result" if answer else "nothing"
                raise Finding(f"request {wanted} is answered by {what} where an error was expected")
        for frame in self.record.open():
            if frame.kind == "response" and isinstance(frame.message, dict):
                id, error = frame.message.get("id"), frame.message.get("error")
                if error is not None and id is not None and id in self.asked:
                    raise Finding(f"request {id} is answered by an error: {_message(error)}")

    def _answer(self, id: JsonValue) -> JsonObject | None:
        for frame in reversed(self.record.frames):
            message = frame.message
            if frame.kind == "response" and isinstance(message, dict) and message.get("id") == id:
                return message
        return None


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


async def run_case(
    case: Case, target: Target, seconds: float, patience: float = PATIENCE_SECONDS
) -> Result:
    """The test's result, within `seconds` whatever the subject does, and `patience` seconds more
    when it asks to be called later."""
    missing = target.missing(case.test)
    if missing is not None:
        return Result(case, Verdict.NA, missing)
    began = time.monotonic()
    course: Course | None = None
    session: Session | None = None
    result = Result(case, Verdict.PASS)
    try:
        async with asyncio.timeout(seconds) as limit:
            session = await target.open(case)
            course = Course(case, session, limit, patience)
            await course.run()
    except Finding as finding:
        partly = course is not None and course.met > 0 and case.test.severity == "optional"
        result.verdict = Verdict.PARTIAL if partly and finding.near else Verdict.FAIL
        result.reason, result.near = str(finding), finding.near
    except NotApplicable as reason:
        result.verdict, result.reason = Verdict.NA, str(reason)
    except TimeoutError:
        result.verdict, result.reason = Verdict.FAIL, f"the test took longer than {seconds:g} s"
    except (HarnessError, UnknownVariable) as error:
        result.verdict, result.reason = Verdict.ERROR, str(error)
    except Exception as error:
        result.verdict = Verdict.ERROR
        result.reason = f"{type(error).__name__} in the harness: {error}"
        result.log = traceback.format_exc()
    finally:
        if session is not None:
            result.log += await session.close()
            result.frames = session.record.frames
    result.seconds = time.monotonic() - began
    return result


async def run_all(
    cases: list[Case],
    target: Target,
    *,
    jobs: int,
    seconds: float,
    done: Callable[[Result], None],
) -> list[Result]:
    """Every test, `jobs` at a time; in the order of `cases`. `done` hears of each as it ends."""
    free = asyncio.Semaphore(jobs)

    async def one(case: Case) -> Result:
        async with free:
            result = await run_case(case, target, seconds)
        done(result)
        return result

    return list(await asyncio.gather(*(one(case) for case in cases)))
