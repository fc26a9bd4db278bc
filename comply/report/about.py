"""What a report is about: the protocols that were tested, and how."""

from collections.abc import Sequence

from comply.files import Case
from comply.result import Subject, results_of

_PROTOCOLS = {
    "acp": "ACP",
    "acp-v2": "ACP v2",
    "acp-messages": "ACP Messages",
    "cacp-2.0": "CACP 2.0",
    "json-rpc-2.0": "JSON-RPC 2.0",
    "wire": "CACP Wire Format",
}
_WAYS = {
    "stdio": "Each test of an agent ran in its own process, session and folder.",
    "http": "Each test of a node made its own requests, with values that no other test uses.",
    "command": "Each test of a command ran it once.",
}
_TERMS = (
    "A message is as expected when it has every member that the test names, matching its pattern. "
    "NA: not tested, because a precondition is not met. PARTIAL: an optional test of which some "
    "expectations were met. ERROR: the harness failed, so the subject was not judged."
)
ABSENT = "-"
"""The verdict of a test that was not run on one of several subjects."""
_ABSENT = f"{ABSENT}: of a version that the subject does not speak."


def title(subjects: Sequence[Subject]) -> str:
    """`CACP 2.0 and JSON-RPC 2.0 Compliance Report`."""
    *others, last = list(dict.fromkeys(map(_protocol, _cases(subjects)))) or [""]
    first = f"{', '.join(others)} and " if others else ""
    return f"{first}{last} Compliance Report".strip()


def methodology(subjects: Sequence[Subject]) -> str:
    ways = dict.fromkeys(case.test.transport for case in _cases(subjects))
    several = [_ABSENT] if len(subjects) > 1 else []
    return " ".join([*(_WAYS[way] for way in ways), _TERMS, *several])


def _cases(subjects: Sequence[Subject]) -> list[Case]:
    return [result.case for _, result in results_of(subjects)]


def _protocol(case: Case) -> str:
    """The title of agents for third-party suites over stdio; otherwise the suite's own name."""
    stdio = case.test.transport == "stdio"
    return _PROTOCOLS.get(case.suite, "ACP" if stdio else case.suite)
