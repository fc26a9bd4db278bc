"""Made-up results, for the tests of reports."""

from pathlib import Path

from comply.files import Case
from comply.matching import Mismatch
from comply.record import Frame, Nearest
from comply.result import CaseResult, Subject, Verdict
from schemas.jsont import ComplianceTest

HOSTILE = '<script>alert("x")</script> | `a`\n\x00b'


def result(name: str, verdict: Verdict, severity: str = "required", reason: str = "") -> CaseResult:
    test = ComplianceTest.model_validate(
        {
            "title": f"Title of {name}",
            "description": f"What {name} verifies.",
            "severity": severity,
            "docs": [f"https://example.com/{name}"],
            "steps": [{"delayMs": 0}],
        }
    )
    made = CaseResult(Case(name, "suite", Path("x.jsont"), test), verdict, reason, seconds=0.25)
    if made.bad:
        made.near = Nearest({"id": 1}, {"id": 2}, (Mismatch("id", "expected 1, got 2"),))
        made.frames = [Frame(1.0, True, "other", {"id": 1}), Frame(2.5, False, "other", HOSTILE)]
    return made


def subjects() -> list[Subject]:
    """Two agents with one verdict of each kind between them."""
    one = [
        result("init", Verdict.PASS),
        result("cancel", Verdict.FAIL, reason=f"no response {HOSTILE}"),
        result("modes", Verdict.NA, "optional", "modes is not offered"),
    ]
    other = [
        result("init", Verdict.ERROR, reason="no sandbox"),
        result("cancel", Verdict.PASS),
        result("modes", Verdict.PARTIAL, "optional", "no release"),
    ]
    return [
        Subject("agent-one", {"Modes": "not advertised"}, one),
        Subject("agent-two", {"Modes": "code"}, other),
    ]
