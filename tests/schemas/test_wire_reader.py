"""Warnings of the reader; test_wire.py and test_wire_corpus.py have what it reads."""

from schemas.wire_reader import WARNINGS_MAX, parse
from tests.schemas.wire_messages import malformed, warned


def test_warnings_are_in_the_order_of_lines() -> None:
    text = "STATUS:ok\nLEARNED:a\n  b\nTESTS:`pass`\n"
    assert warned(text) == [
        (2, "LEARNED", "continues to line 3; it was made one line"),
        (4, "TESTS", "'`pass`' is read as pass"),
    ]


def test_a_text_field_that_occurs_twice_is_joined() -> None:
    assert warned("STATUS:ok\nLEARNED:a\nLEARNED:b") == [
        (3, "LEARNED", "is on line 2 too; the two were joined"),
    ]


def test_two_different_values_are_an_error() -> None:
    assert str(malformed("STATUS:ok\nBUILD:pass\nBUILD:skip")) == (
        "line 3: BUILD is on line 2 too, with another value; allowed: one line for it"
    )


def test_the_number_of_warnings_is_bounded() -> None:
    lines = "".join(f"FILES_CREATED:`a{index}.py` - new\n" for index in range(WARNINGS_MAX + 5))
    parsed = parse(f"STATUS:ok\n{lines}")
    assert parsed is not None
    assert len(parsed.warnings) == WARNINGS_MAX
    assert parsed.warnings[-1].message.startswith("and 6 more warnings")
