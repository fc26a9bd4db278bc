"""The report as JSON, for programs."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from comply.result import CaseResult, Subject, Verdict, tally

VERSION = 1


def as_json(subjects: Sequence[Subject]) -> str:
    """`{version, subjects: [{name, facts, counts, required, tests: […]}]}`.

    A subject that was not tested to the end has a `problem`. `transcript` and `stderr` are of the
    bad only.
    """
    report: JsonValue = {
        "version": VERSION,
        "subjects": [_subject(subject) for subject in subjects],
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def _subject(subject: Subject) -> JsonValue:
    counts = tally([subject])
    return {
        "name": subject.name,
        "facts": dict(subject.facts),
        "seconds": round(subject.seconds, 3),
        "stray": list[JsonValue](subject.stray),
        "counts": {verdict.value: subject.count(verdict) for verdict in Verdict},
        "required": {
            "tests": counts.required,
            "passed": counts.passed,
            "failed": counts.failed,
            "untested": counts.untested,
            "breaking": counts.breaking,
        },
        "tests": [_test(result) for result in subject.results],
        **({"problem": subject.problem} if subject.problem else {}),
    }


def _test(result: CaseResult) -> JsonValue:
    test: dict[str, JsonValue] = {
        "test": result.key,
        "title": result.case.test.title,
        "area": result.area,
        "severity": result.case.test.severity,
        "verdict": result.verdict.value,
        "seconds": round(result.seconds, 3),
        "docs": list[JsonValue](result.case.test.docs),
    }
    if result.reason:
        test["reason"] = result.reason
    if result.near is not None:
        test["expected"] = result.near.expected
        test["nearest"] = result.near.message
        test["mismatches"] = [str(mismatch) for mismatch in result.near.mismatches]
    if result.bad:
        test["transcript"] = [
            {"at": round(frame.at, 1), "sent": frame.sent, "message": frame.message}
            | ({"breach": frame.breach} if frame.breach else {})
            for frame in result.frames
        ]
        if result.log:
            test["stderr"] = result.log
    return test
