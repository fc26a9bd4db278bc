"""What a run comes to: its exit status."""

import pytest

from comply.plan import judge, run
from comply.result import Result, Subject, Verdict
from comply.run import Target
from tests.comply.results import result
from tests.comply.targets import Scripted


@pytest.mark.parametrize(
    ("verdict", "severity", "known", "status"),
    [
        (Verdict.PASS, "required", [], 0),
        (Verdict.NA, "required", [], 0),
        (Verdict.FAIL, "required", [], 1),
        (Verdict.FAIL, "optional", [], 0),
        (Verdict.PARTIAL, "optional", [], 0),
        (Verdict.FAIL, "required", ["suite/x"], 0),
        (Verdict.PASS, "required", ["suite/x"], 1),
        (Verdict.ERROR, "optional", [], 3),
    ],
)
def test_exit_status(verdict: Verdict, severity: str, known: list[str], status: int) -> None:
    subject = Subject("agent", {}, [result("x", verdict, severity)])
    assert judge([subject], frozenset(known)).status == status


def test_every_test_runs_on_every_target_and_targets_are_let_go() -> None:
    targets = [Scripted("one"), Scripted("two")]
    cases = [result(name, Verdict.PASS).case for name in ("a", "b")]
    heard: list[str] = []

    def done(target: Target, ended: Result) -> None:
        heard.append(f"{target.name}/{ended.key}")

    subjects = run(cases, lambda: targets, jobs=2, seconds=5, done=done)
    assert [subject.name for subject in subjects] == ["one", "two"]
    assert sorted(heard) == ["one/suite/a", "one/suite/b", "two/suite/a", "two/suite/b"]
    assert all(target.learnt and target.closed for target in targets)
