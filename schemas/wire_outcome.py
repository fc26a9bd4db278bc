"""Whether a report that says that the work is done may be believed (`schemas.wire`): what else the
text says of STATUS, TESTS and BUILD, before the report, beside it and within its text.

Every function here is linear in the length of its input.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from schemas.plain import one_line
from schemas.wire_doubt import Passed, says_failed, still_fails, tells_of_failure, topic
from schemas.wire_text import LISTS, Block
from schemas.wire_values import DONE, ONE_WORD, said

_SAYS_ALL = "a last report that says it all"
_OWN_LINE = "TESTS and BUILD as they came out, each on its own line, and a STATUS that agrees"
_TROUBLE = ("ERROR", "QUESTION")
_NAMED = re.compile(r"[\W_]*+(TESTS|BUILD)(?!\w)")


class Contradiction(NamedTuple):
    """What speaks against a report, at which line, and what would be right."""

    field: str
    line: int
    problem: str
    allowed: str


def contradiction(
    earlier: Sequence[Block], block: Block, lacking: Collection[str], *, failing: bool
) -> Contradiction | None:
    """The first thing in a text that speaks against its last report, which is done; None if there
    is none. `lacking`: those fields of one word that the report says nothing of. `failing`: it says
    itself that TESTS or BUILD failed, so that it completes nothing."""
    before = [one for one in earlier if one.head != "TASK"]
    found = _not_taken_back(block, lacking, before)
    if found is None and block.quoted:
        found = _not_taken_back(block, ONE_WORD, [one for one in before if not one.quoted])
    if found is None:
        found = _apart(block, before)
    if found is None and not failing:
        found = _failure(block, lacking)
    return found


def overlooked(block: Block) -> Iterator[tuple[int, str]]:
    """The lines behind the head that name TESTS or BUILD as no field does, and the names."""
    for line in block.passed:
        found = _NAMED.match(line.text)
        name = found[1] if found else topic(line.text)
        if line.number > block.number and name in ("TESTS", "BUILD"):
            yield line.number, name


def _not_taken_back(
    block: Block, names: Collection[str], before: Sequence[Block]
) -> Contradiction | None:
    """What was said last of one of some fields, when that is not that it is done."""
    lacking = set(names)
    for entry in (entry for one in reversed(before) for entry in reversed(one.entries)):
        if entry.name not in lacking or not entry.value:
            continue
        lacking.discard(entry.name)
        found = said(entry.name, entry.value)
        if found is not None and found.word not in (*DONE, "pass", "skip"):
            what = "is an example" if block.quoted else "doesn't say what became of it"
            problem = f"says {found.word}, and the report on line {block.number} {what}"
            return Contradiction(entry.name, entry.line.number, problem, _SAYS_ALL)
    return None


def _apart(block: Block, before: Sequence[Block]) -> Contradiction | None:
    """An ERROR or QUESTION that is of no report."""
    for entry in (entry for one in before if one.head is None for entry in one.entries):
        if entry.name in _TROUBLE and entry.value:
            problem = f"stands apart from the report on line {block.number}"
            return Contradiction(entry.name, entry.line.number, problem, _SAYS_ALL)
    return None


def _failure(block: Block, lacking: Collection[str]) -> Contradiction | None:
    """What says, beside the fields for it, that tests or a build failed."""
    about = {"TESTS", "BUILD"} & set(lacking)
    for line in block.passed:
        before = line.number < block.number
        if still_fails(line, about) if before else tells_of_failure(line):
            return _told(line.number, line.text)
    for entry in block.entries:
        if entry.name in ONE_WORD or entry.name in LISTS:
            continue
        for piece in entry.pieces:
            line = Passed(piece.number, piece.text)
            troubled = entry.name in _TROUBLE and tells_of_failure(line)
            if troubled or says_failed(piece.text) or still_fails(line, about):
                return _told(piece.number, piece.text)
        if says_failed(f"{entry.name}: {entry.value}"):
            return _told(entry.line.number, f"{entry.name}: {entry.value}")
    return None


def _told(line: int, text: str) -> Contradiction:
    problem = f"says that all is done, and this line tells of a failure: {one_line(text, 60)!r}"
    return Contradiction("STATUS", line, problem, _OWN_LINE)
