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
    "stdio": "Each test of an agent ran in a process, a session and a folder of its own.",
    "http": "Each test of a node made requests of its own, with values that no other test uses.",
    "command": "Each test of a command ran it once.",
}
_TERMS = (
    "A message is as expected when all that the test names is in it and fits its pattern. NA: not "
    "tested, because what the test needs is not there. PARTIAL: an optional test of which some "
    "expectations were met. ERROR: the harness failed, which says nothing about the subject."
)
ABSENT = "-"
"""Stands for the verdict of a test that was not put to one subject of several."""
_ABSENT = f"{ABSENT}: of a version that the subject does not speak."


def title(subjects: Sequence[Subject]) -> str:
    """`CACP 2.0 and JSON-RPC 2.0 Compliance Report`."""
    *others, last = list(dict.fromkeys(map(_protocol, _cases(subjects)))) or [""]
    first = f"{', '.join(others)} and " if others else ""
    return f"{first}{last} Compliance Report".strip()


def methodology(subjects: Sequence[Subject]) -> str:
    ways = dict.fromkeys(case.test.transport for case in _cases(subjects))
    several = [_ABSENT] if len(subjects) > 1 else []
    return " ".join([*(_WAYS[one] for one in ways), _TERMS, *several])


def _cases(subjects: Sequence[Subject]) -> list[Case]:
    return [result.case for _, result in results_of(subjects)]


def _protocol(case: Case) -> str:
    """Of other people's suites over stdio, that of agents; else such a suite has its own name."""
    stdio = case.test.transport == "stdio"
    return _PROTOCOLS.get(case.suite, "ACP" if stdio else case.suite)
