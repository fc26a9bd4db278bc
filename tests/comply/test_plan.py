"""A whole run: nothing that is finished is lost, whatever becomes of the rest."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from comply.files import Case
from comply.plan import ENDING, ComplianceRun
from comply.result import CaseResult, Subject, Verdict
from comply.target import SubjectUnreachable, Target
from tests.comply.results import result
from tests.comply.targets import Scripted, ScriptedSession

CASES = [result(name, Verdict.PASS).case for name in ("a", "b", "c")]


def run(
    *targets: Target,
    done: Callable[[Subject, CaseResult | None], None] = lambda subject, result: None,
    jobs: int = 1,
) -> ComplianceRun:
    whole = ComplianceRun(CASES, lambda: targets, jobs=jobs, seconds=60, done=done)
    whole.go()
    return whole


def test_of_tests_put_unasked_a_target_gets_those_of_its_version() -> None:
    newer = result("d", Verdict.PASS).case
    newer = replace(newer, test=newer.test.model_copy(update={"protocol_version": 2}))

    def tests(*cases: Case, unasked: bool) -> str:
        target: list[Target] = [Scripted()]
        whole = ComplianceRun(
            cases, lambda: target, jobs=1, seconds=60, done=lambda *_: None, unasked=unasked
        )
        whole.go()
        return "".join(one.case.id for one in whole.subjects[0].results)

    assert tests(*CASES, newer, unasked=True) == "abc"
    assert tests(*CASES, newer, unasked=False) == "abcd"
    assert tests(newer, unasked=True) == "d"


def verdicts(subject: Subject) -> list[tuple[str, str]]:
    return [(one.verdict.value, one.reason) for one in subject.results]


def test_every_test_runs_on_every_target_and_targets_are_let_go() -> None:
    targets = [Scripted("one"), Scripted("two")]
    heard: list[str] = []

    def done(subject: Subject, ended: CaseResult | None) -> None:
        heard.append(f"{subject.name}/{ended.key if ended else ''}")

    subjects = run(*targets, done=done, jobs=2).subjects
    assert [subject.name for subject in subjects] == ["one", "two"]
    assert sorted(heard) == [f"{name}/suite/{test}" for name in ("one", "two") for test in "abc"]
    assert all(target.learnt and target.closed for target in targets)


class Gone(Scripted):
    def __init__(self, error: Exception) -> None:
        super().__init__("gone")
        self.error = error

    async def learn(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SubjectUnreachable("can't start gone"), "can't start gone"),
        (TypeError("oops"), "TypeError in the harness: oops"),
    ],
)
def test_a_subject_that_cant_be_tested_keeps_nobody_from_being_tested(
    error: Exception, said: str
) -> None:
    gone = Gone(error)
    first, second, third = run(Scripted("one"), gone, Scripted("two")).subjects
    assert verdicts(first) == verdicts(third) == [("PASS", "")] * 3
    assert verdicts(second) == [("NA", f"not run: {said}")] * 3
    assert (second.problem, second.ran, gone.closed) == (said, 0, True)


@pytest.fixture
def handlers() -> Iterator[None]:
    """Signals do what they do by default, though these tests may be started to ignore some."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.usefixtures("handlers")
def test_a_signal_leaves_what_is_finished(number: signal.Signals) -> None:
    targets = [Scripted("one"), Scripted("two")]
    ended: list[CaseResult] = []

    def done(subject: Subject, result: CaseResult | None) -> None:
        assert result is not None
        ended.append(result)
        if len(ended) == 2:
            os.kill(os.getpid(), number)

    whole = run(*targets, done=done)
    said = ("NA", f"not run: the run was ended by {number.name}")
    assert whole.ended_by is number
    first, second = map(verdicts, whole.subjects)
    assert first[:2] == [("PASS", "")] * 2
    assert second == [said] * 3
    assert whole.subjects[1].problem == f"the run was ended by {number.name}"
    assert targets[0].closed


class Slow(Scripted):
    """Two tests run, and are cut short by Ctrl-C; another comes while they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.let_go: list[str] = []

    async def clean(self) -> list[str]:
        """Another Ctrl-C comes while it is cleaned up."""
        assert len(self.let_go) == 2
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(20):
            await asyncio.sleep(0)
        return ["removed 2 things"]

    async def open(self, case: Case) -> "SlowSession":
        return SlowSession(self, case.id)


class SlowSession(ScriptedSession):
    def __init__(self, target: Slow, name: str) -> None:
        super().__init__()
        self.target = target
        self.name = name

    async def start(self) -> None:
        self.target.begun.append(self.name)
        if len(self.target.begun) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    async def close(self) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(20):
            await asyncio.sleep(0)
        self.target.let_go.append(self.name)
        return ""


@pytest.mark.usefixtures("handlers")
def test_a_signal_lets_go_of_all_that_runs() -> None:
    target = Slow()
    whole = run(target, jobs=2)
    assert whole.ended_by is signal.SIGINT
    assert sorted(target.let_go) == target.begun == ["a", "b"]
    assert whole.subjects[0].cleanup == ["removed 2 things"]
    assert target.closed


@pytest.mark.usefixtures("handlers")
def test_a_signal_that_we_were_started_to_ignore_is_ignored() -> None:
    """As nohup has it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    whole = run(Scripted("one"), done=lambda subject, result: os.kill(os.getpid(), signal.SIGHUP))
    assert whole.ended_by is None
    assert verdicts(whole.subjects[0]) == [("PASS", "")] * 3


def test_what_hears_of_results_and_breaks_ends_its_subject_only() -> None:
    def done(subject: Subject, result: CaseResult | None) -> None:
        if subject.name == "one" and result is not None:
            raise OSError("nobody listens")

    first, second = run(Scripted("one"), Scripted("two"), done=done).subjects
    assert first.problem == "OSError in the harness: nobody listens"
    assert first.results[0].verdict is Verdict.PASS
    assert verdicts(second) == [("PASS", "")] * 3
