"""Looks in a text for what contradicts a report of finished work (`schemas.wire`): other values of
STATUS, TESTS and BUILD, and lines that report a failure.

Every function here is linear in the length of its input.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from schemas.plain import one_line
from schemas.wire_doubt import Passed, reports_failure, says_failed, still_fails, topic
from schemas.wire_text import LISTS, FieldBlock
from schemas.wire_values import DONE, ONE_WORD, field_word

_COMPLETE = "a last report with all of it"
_OWN_LINE = "the results of TESTS and BUILD, each on its own line, and a STATUS that agrees"
_TROUBLE = ("ERROR", "QUESTION")
_NAMED = re.compile(r"[\W_]*+(TESTS|BUILD)(?!\w)")


class Contradiction(NamedTuple):
    """What contradicts a report, on which line, and what would be right."""

    field: str
    line: int
    problem: str
    allowed: str


def contradiction(
    earlier: Sequence[FieldBlock], block: FieldBlock, lacking: Collection[str], *, failing: bool
) -> Contradiction | None:
    """The first contradiction to the last report of a text, whose STATUS says done; or None.

    `lacking`: those of STATUS, TESTS and BUILD that the report leaves open. `failing`: the report
    itself says that TESTS or BUILD failed, so it completes nothing.
    """
    before = [other for other in earlier if other.head != "TASK"]
    conflict = _not_taken_back(block, lacking, before)
    if conflict is None and block.quoted:
        unquoted = [other for other in before if not other.quoted]
        conflict = _not_taken_back(block, ONE_WORD, unquoted)
    if conflict is None:
        conflict = _apart(block, before)
    if conflict is None and not failing:
        conflict = _failure(block, lacking)
    return conflict


def overlooked(block: FieldBlock) -> Iterator[tuple[int, str]]:
    """The lines after the head that name TESTS or BUILD but are not fields, and the names."""
    for line in block.passed:
        match = _NAMED.match(line.text)
        name = match[1] if match else topic(line.text)
        if line.number > block.number and name in ("TESTS", "BUILD"):
            yield line.number, name


def _not_taken_back(
    block: FieldBlock, names: Collection[str], before: Sequence[FieldBlock]
) -> Contradiction | None:
    """The last value of one of the fields `names` before the report, if it is not success."""
    lacking = set(names)
    for entry in (entry for other in reversed(before) for entry in reversed(other.entries)):
        if entry.name not in lacking or not entry.value:
            continue
        lacking.discard(entry.name)
        value = field_word(entry.name, entry.value)
        if value is not None and value.word not in (*DONE, "pass", "skip"):
            why = "is an example" if block.quoted else "has no later result"
            problem = f"says {value.word}, and the report on line {block.number} {why}"
            return Contradiction(entry.name, entry.line.number, problem, _COMPLETE)
    return None


def _apart(block: FieldBlock, before: Sequence[FieldBlock]) -> Contradiction | None:
    """An ERROR or QUESTION that belongs to no report."""
    for entry in (entry for other in before if other.head is None for entry in other.entries):
        if entry.name in _TROUBLE and entry.value:
            problem = f"is separate from the report on line {block.number}"
            return Contradiction(entry.name, entry.line.number, problem, _COMPLETE)
    return None


def _failure(block: FieldBlock, lacking: Collection[str]) -> Contradiction | None:
    """A line outside TESTS and BUILD that reports a failure of tests or a build."""
    about = {"TESTS", "BUILD"} & set(lacking)
    for line in block.passed:
        before = line.number < block.number
        if still_fails(line, about) if before else reports_failure(line):
            return _reported_failure(line.number, line.text)
    for entry in block.entries:
        if entry.name in ONE_WORD or entry.name in LISTS:
            continue
        for piece in entry.pieces:
            line = Passed(piece.number, piece.text)
            troubled = entry.name in _TROUBLE and reports_failure(line)
            if troubled or says_failed(piece.text) or still_fails(line, about):
                return _reported_failure(piece.number, piece.text)
        if says_failed(f"{entry.name}: {entry.value}"):
            return _reported_failure(entry.line.number, f"{entry.name}: {entry.value}")
    return None


def _reported_failure(line: int, text: str) -> Contradiction:
    problem = f"says that all is done, and this line reports a failure: {one_line(text, 60)!r}"
    return Contradiction("STATUS", line, problem, _OWN_LINE)
