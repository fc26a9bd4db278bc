from cli.probe_view import outcome_lines
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome

OUTCOME = ProbeOutcome(
    "cacp probe",
    "a" * 64,
    7,
    (OperationTally("GET /a", 6, 4, 5),),
    (ProbeFailure("GET /a", "undeclared_status", "It is\x1b[2J 500.", "curl http://h/a"),),
    ("GET /b: no value fits.",),
    "2026-01-01T00:00:00Z",
    1234,
    None,
    ("POST webhook w",),
    ("GET /a: query q: pattern",),
)


def test_an_outcome_is_told_whole_and_controls_no_terminal() -> None:
    assert list(outcome_lines("Get a\x1b[2J", OUTCOME)) == [
        "GET /a: 6 valid, 4 invalid, 5 with success",
        "✗ GET /a: undeclared status",
        "    It is 500.",
        "    curl http://h/a",
        "? GET /b: no value fits.",
        "- POST webhook w can't be called, so it was not tried",
        "- GET /a: query q: pattern could not be broken, so nothing shows that it is checked",
        "Get a: FAILED, 10 cases in 1.2 s, seed 7",
    ]
