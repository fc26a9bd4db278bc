"""Runs a test: its steps, one after the other, against a session of any transport.

Nothing here knows a protocol's methods: what is sent and expected stands in the test.
"""

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue

from comply.files import Case
from comply.kept import shorten
from comply.matching import at, look_up, matches
from comply.patterns import PatternError
from comply.record import (
    Frame,
    Kind,
    Nearest,
    Record,
    answered_otherwise,
    expected_of,
    meet,
    nearest,
)
from comply.result import Finding, NotApplicable, Result, Verdict
from comply.template import UnknownVariable, fill, fill_pattern, text_of
from schemas.jsont import ComplianceTest, Expect, ExpectedMessage, Forbid, JsonObject, Step

T = TypeVar("T")

RETRY_SECONDS = 0.1
ANSWER_SECONDS = 30.0
"""How long, when all steps are done, each request still has to be answered."""
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

    async def start(self) -> None:
        """Let the subject begin."""

    async def act(self, step: Step) -> None:
        """Do what a step says that is not the runner's own: send, request, run, newSession."""

    async def close(self) -> str:
        """Let go of the subject, started or not; what it said beside the protocol (stderr)."""


class Target(Protocol):
    """An agent or node under test."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> dict[str, str]: ...

    async def missing(self, test: ComplianceTest) -> str | None:
        """Why this test can't be put to this target; None when it can.

        Raises Finding when it is known by now how it would end.
        """

    def concerns(self, test: ComplianceTest) -> bool:
        """Whether the test is of a version of its protocol that the target speaks."""

    async def open(self, case: Case) -> Session:
        """A session that has not started."""

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
        self.asked: list[tuple[JsonValue, bool]] = []
        """The id of each request, and whether an error should answer it."""
        self.since = 0
        """The first frame after what the test last did, or saw."""
        self.latest: tuple[Step, int] | None = None
        """The request that a window may repeat, and where its frames start."""

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
        """What the whole of it says, whatever a step did. Raises Finding, NotApplicable."""
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
        """Remember which request this is, and whether its answer should be an error."""
        id = fill(frame.get("id"), self.session.variables)
        if id is not None:
            self.asked.append((id, frame.get("expectError") is True))

    def filled(self, messages: Sequence[ExpectedMessage]) -> list[tuple[Kind, JsonValue]]:
        """The kind and the partial message of each, with its variables."""
        return [
            (kind, fill_pattern(fields, self.session.variables))
            for kind, fields in map(expected_of, messages)
        ]

    async def expect(self, window: Expect) -> None:
        wanted = self.filled(window.messages)

        def heard() -> list[Frame]:
            return self.record.open(self.start if window.fresh else 0)

        def found() -> Mapping[int, Frame]:
            return meet(wanted, heard())

        def whole() -> bool:
            return len(found()) == len(wanted)

        asking = window.na_unless is not None or window.na_if is not None

        def over() -> bool:
            enough = bool(found()) if asking else whole()
            return enough or answered_otherwise(wanted, found(), heard())

        await self.wait(window, over, whole)
        met = found()
        if asking:
            self.applies(window, met)
            return
        before = heard()
        for place, frame in met.items():
            frame.matched = True
            if frame.refusal is not None and _names_its_code(wanted[place][1], frame.message):
                frame.refusal = None
        for number, frame in enumerate(self.record.frames, 1):
            if any(frame is one for one in met.values()):
                self.since = max(self.since, number)
        self.met += len(met)
        for place, (kind, partial) in enumerate(wanted):
            if place not in met:
                near = nearest(kind, partial, before)
                raise Finding(self._unmet(kind, window, near), near)
        self.keep(window, met)

    @property
    def start(self) -> int:
        """Where the frames begin that came after the latest step that did something."""
        return self.latest[1] if self.latest is not None else 0

    def applies(self, window: Expect, met: Mapping[int, Frame]) -> None:
        """Whether the test is about anything that the subject offers. Raises NotApplicable."""
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
        """Raises Finding when no message has what is to be kept."""
        for capture in window.captures:
            self.session.variables[capture.var] = _captured(capture.path, met)

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

        def seen() -> Iterator[str]:
            for frame in self.record.frames[latest:] if unwanted else ():
                if any(
                    frame.kind == kind and matches(one, frame.message) for kind, one in unwanted
                ):
                    yield f"said what it must not: {text_of(frame.message)[:120]}"
            for frame in self.record.frames[start:]:
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
        """Each request is answered; by an error only where one was asked for or expected."""
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
        """The latest answer with this id, which must be of the same type."""
        for frame in reversed(self.record.frames):
            message = frame.message
            if frame.kind == "response" and not frame.sent and isinstance(message, dict):
                found = message.get("id")
                if found == id and type(found) is type(id):
                    return frame
        return None


def _names_its_code(expected: JsonValue, answer: JsonValue) -> bool:
    """Whether an expectation is met by this error's code and by no other."""
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


async def run_case(
    case: Case, target: Target, seconds: float, patience: float = PATIENCE_SECONDS
) -> Result:
    """The test's result, within `seconds` and its own windows whatever the subject does, and
    `patience` seconds more when it asks to be called later."""
    if case.problem:
        return Result(case, Verdict.ERROR, case.problem)
    began = time.monotonic()
    session: Session | None = None
    course: Course | None = None
    result = Result(case, Verdict.PASS)
    seconds += own_seconds(case.test)
    try:
        missing = await target.missing(case.test)
        if missing is not None:
            return Result(case, Verdict.NA, missing)
        async with asyncio.timeout(seconds) as limit:
            session = await target.open(case)
            course = Course(case, session, limit, patience)
            await course.run()
    except Finding as finding:
        _fail(result, finding, course.met if course is not None else 0)
    except NotApplicable as reason:
        result.verdict, result.reason = Verdict.NA, str(reason)
    except TimeoutError:
        result.verdict, result.reason = Verdict.FAIL, f"the test took longer than {seconds:g} s"
    except (HarnessError, UnknownVariable, PatternError) as error:
        result.verdict, result.reason = Verdict.ERROR, str(error)
    except Exception as error:
        _give_up(result, error)
    finally:
        if session is not None:
            await _let_go(result, session)
    hold(result)
    shorten(result, result.frames)
    result.seconds = time.monotonic() - began
    return result


def hold(result: Result) -> None:
    """A message that breaks the protocol fails whatever test it comes in."""
    if not result.breaches or result.verdict is Verdict.ERROR:
        return
    first, more = result.breaches[0], len(result.breaches) - 1
    said = f"{first} (and {more} more)" if more else first
    told = result.verdict in (Verdict.FAIL, Verdict.PARTIAL)
    result.reason = f"{result.reason}; besides, {said}" if told else said
    result.verdict = Verdict.FAIL


def own_seconds(test: ComplianceTest) -> float:
    """What a test's windows and delays may take together."""
    windows = [step.expect or step.forbid for step in test.steps]
    waits = [one.timeout_ms for one in windows if one] + [s.delay_ms or 0 for s in test.steps]
    return sum(waits) / 1000


def _fail(result: Result, finding: Finding, met: int) -> None:
    partly = met > 0 and result.case.test.severity == "optional" and finding.near is not None
    result.verdict = Verdict.PARTIAL if partly else Verdict.FAIL
    result.reason, result.near, result.log = str(finding), finding.near, finding.log


def _give_up(result: Result, error: Exception) -> None:
    result.verdict = Verdict.ERROR
    result.reason = f"{type(error).__name__} in the harness: {error}"
    result.log += "".join(traceback.format_exception(error))


async def _let_go(result: Result, session: Session) -> None:
    """Keeps what the session heard, and its result even if it can't be closed."""
    try:
        result.log += await to_its_end(session.close())
    except Exception as error:
        _give_up(result, error)
    broken = (frame.breach for frame in session.record.frames if frame.breach)
    result.breaches = list(dict.fromkeys(broken))
    result.frames = session.record.frames


async def to_its_end(closing: Coroutine[Any, Any, T]) -> T:
    """What it gives, or raises. Whoever is cancelled meanwhile, however often, waits for it: else
    an agent would go on without us."""
    task, cancelled = asyncio.create_task(closing), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


async def run_all(
    cases: list[Case],
    target: Target,
    *,
    jobs: int,
    seconds: float,
    done: Callable[[Result], None],
) -> list[Result]:
    """Every test, `jobs` at a time; in the order of `cases`. `done` hears of each as it ends.

    What `done` raises is raised, once no test runs any more.
    """
    free = asyncio.Semaphore(jobs)

    async def one(case: Case) -> Result:
        async with free:
            result = await run_case(case, target, seconds)
        done(result)
        return result

    tasks = [asyncio.create_task(one(case)) for case in cases]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
