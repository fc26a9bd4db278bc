"""Runs tests: each to a result, several at a time."""

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from comply.execution import CaseExecution
from comply.files import Case
from comply.patterns import PatternError
from comply.report_limits import shorten
from comply.result import CaseResult, Finding, NotApplicable, Verdict
from comply.target import CaseSession, HarnessError, Target
from comply.template import UnknownVariable
from schemas.jsont import ComplianceTest

T = TypeVar("T")

PATIENCE_SECONDS = 300.0
"""How long, in one test, a subject that answers `retryAfter` is waited for."""


async def run_case(
    case: Case, target: Target, seconds: float, patience: float = PATIENCE_SECONDS
) -> CaseResult:
    """The result of a test, whatever the subject does.

    It takes at most `seconds` beside the test's own windows, and `patience` seconds more when the
    subject asks for requests to be repeated later.
    """
    if case.problem:
        return CaseResult(case, Verdict.ERROR, case.problem)
    began = time.monotonic()
    session: CaseSession | None = None
    course: CaseExecution | None = None
    result = CaseResult(case, Verdict.PASS)
    seconds += own_seconds(case.test)
    try:
        missing = await target.missing(case.test)
        if missing is not None:
            return CaseResult(case, Verdict.NA, missing)
        async with asyncio.timeout(seconds) as limit:
            session = await target.open(case)
            course = CaseExecution(case, session, limit, patience)
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


def hold(result: CaseResult) -> None:
    """Fail a test in which any message breaks the protocol, whatever it is about."""
    if not result.breaches or result.verdict is Verdict.ERROR:
        return
    first, more = result.breaches[0], len(result.breaches) - 1
    breaches = f"{first} (and {more} more)" if more else first
    failed = result.verdict in (Verdict.FAIL, Verdict.PARTIAL)
    result.reason = f"{result.reason}; besides, {breaches}" if failed else breaches
    result.verdict = Verdict.FAIL


def own_seconds(test: ComplianceTest) -> float:
    """What a test's windows and delays may take together."""
    windows = [step.expect or step.forbid for step in test.steps]
    waits = [window.timeout_ms for window in windows if window] + [
        s.delay_ms or 0 for s in test.steps
    ]
    return sum(waits) / 1000


def _fail(result: CaseResult, finding: Finding, met: int) -> None:
    partly = met > 0 and result.case.test.severity == "optional" and finding.near is not None
    result.verdict = Verdict.PARTIAL if partly else Verdict.FAIL
    result.reason, result.near, result.log = str(finding), finding.near, finding.log


def _give_up(result: CaseResult, error: Exception) -> None:
    result.verdict = Verdict.ERROR
    result.reason = f"{type(error).__name__} in the harness: {error}"
    result.log += "".join(traceback.format_exception(error))


async def _let_go(result: CaseResult, session: CaseSession) -> None:
    """Close the session and keep its transcript; the result stays even if closing fails."""
    try:
        result.log += await to_its_end(session.close())
    except Exception as error:
        _give_up(result, error)
    broken = (frame.breach for frame in session.record.frames if frame.breach)
    result.breaches = list(dict.fromkeys(broken))
    result.frames = session.record.frames


async def to_its_end(closing: Coroutine[Any, Any, T]) -> T:
    """Wait for `closing` even if the caller is cancelled: otherwise an agent would keep
    running. Returns its result or raises what it raises."""
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
    done: Callable[[CaseResult], None],
) -> list[CaseResult]:
    """Run every test, `jobs` at a time. Returns results in the order of `cases`.

    `done` is called with each result as it comes. What it raises is raised once all tests stopped.
    """
    free = asyncio.Semaphore(jobs)

    async def finished(case: Case) -> CaseResult:
        async with free:
            result = await run_case(case, target, seconds)
        done(result)
        return result

    tasks = [asyncio.create_task(finished(case)) for case in cases]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
