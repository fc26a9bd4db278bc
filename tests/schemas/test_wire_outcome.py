"""Whether a report that says that all is done may be believed."""

import pytest

from schemas.wire_outcome import Contradiction, contradiction, overlooked
from schemas.wire_text import blocks


def found(text: str, *lacking: str, failing: bool = False) -> Contradiction | None:
    *earlier, block = blocks(text, ("STATUS", "TASK"))
    return contradiction(earlier, block, set(lacking), failing=failing)


@pytest.mark.parametrize(
    ("text", "lacking", "at"),
    [
        ("TESTS:fail\n\nSTATUS:ok", {"TESTS"}, ("TESTS", 1)),
        ("TESTS:fail\n\nSTATUS:ok", {"BUILD"}, None),
        ("TESTS:fail\n\nTESTS:pass\n\nSTATUS:ok", {"TESTS"}, None),
        ("STATUS:fail\n\n> STATUS:ok", set(), ("STATUS", 1)),
        ("> STATUS:fail\n\n> STATUS:ok", set(), None),
        ("ERROR:x\nprose\nSTATUS:ok", set(), ("ERROR", 1)),
        ("STATUS:ok\n\nTests are red.", set(), ("STATUS", 3)),
        ("STATUS:ok\nLEARNED:x; BUILD: fail", set(), ("STATUS", 2)),
        ("STATUS:ok\nLEARNED:the build fails without C", set(), None),
        ("STATUS:ok\nLEARNED:the build fails without C", {"BUILD"}, ("STATUS", 2)),
        ("STATUS:ok\nERROR:the build fails", set(), ("STATUS", 2)),
        ("STATUS:ok\nFILES_CREATED:build: fail.py", set(), None),
    ],
)
def test_what_speaks_against_it(text: str, lacking: set[str], at: tuple[str, int] | None) -> None:
    told = found(text, *lacking)
    assert (told and (told.field, told.line)) == at


def test_a_report_that_says_it_failed_needs_no_witness() -> None:
    text = "STATUS:ok\nTESTS:fail\n\nTests are red."
    assert found(text, failing=True) is None
    assert found(text) is not None


def test_what_is_told_is_one_short_line() -> None:
    told = found("STATUS:ok\n\nTests are red" + " and so on" * 100)
    assert told is not None
    assert len(told.problem) < 200


def test_names_without_a_colon_are_overlooked() -> None:
    block = blocks("TESTS - pass\n\nSTATUS:ok\n**TESTS** pass\n\n## Build\n\nfine", ("STATUS",))[-1]
    assert list(overlooked(block)) == [(4, "TESTS"), (6, "BUILD")]
