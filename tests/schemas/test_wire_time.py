"""The wire format is read in linear time, whatever the input. Measured, hence in the soak."""

import contextlib
from collections.abc import Callable

import pytest

from schemas.wire import WireError, parse
from tests.support.growth import grows_linearly

pytestmark = pytest.mark.soak

REPEATED = [
    *("prose, and more of it\n", "STATUS\n", "\n", "\r", " ", "> ", "- ", "*", "`", "#", "9"),
    *("A", "A_", ":", ",", "\x00", "\ud800", "\x1b", "\x1b[", "\x1b[1", "\x1b[1 ", "\x1b]"),
    *("| ", "1 ", "1/", "pass ", "\u2028", "- x\n", "TESTS:fail\n\nSTATUS:ok\n"),
    *("\x1b]0;x", "\x1bP\x1b", "STATUS:ok", "STATUS:ok\n", "**STATUS:", "LEARNED:x\n\n"),
]
OPENED = [
    *(("\x1b[", "1"), ("\x1b[", "1 "), ("\x1b]0;", "title "), ("\x1b]", "\x1b["), ("**A:", "*")),
    *(("STATUS:ok\nTESTS:pass ", "1 "), ("STATUS:ok\nTESTS:pass ", "no ")),
    *(("STATUS:ok\nTESTS:", "`"), ("STATUS:ok\nFILES_CREATED:", "`a`")),
    *(("STATUS:ok\nLEARNED:\n", "- x\n"), ("STATUS:ok\nLEARNED:x\n", "two\n")),
    *(("STATUS:ok\n", "\n"), ("STATUS:ok\n", "FILES_CREATED:a,b\n")),
    *(
        ("STATUS:ok\n", "TESTS "),
        ("STATUS:ok\n", "test build "),
        ("STATUS:ok\nLEARNED:", "BUILD *"),
    ),
    *(("STATUS:ok\nLEARNED:", "failing test"), ("STATUS:ok\nLEARNED:", "tests not added ")),
    *(
        ("STATUS:ok\n", "add tests "),
        ("STATUS:ok\nTESTS:pass\n", "- unit\n"),
        ("STATUS:ok\n", "0 "),
    ),
    *(("STATUS:ok\nFILES_CREATED:", "a.py "), ("STATUS:ok\nFILES_CREATED:", "(a.py")),
    *(("STATUS:ok\nFILES_CREATED:", "x/;"), ("STATUS:ok\nFILES_CREATED:", "a -")),
    *(("STATUS:ok\nTESTS:pass (", "go test ./a "), ("STATUS:ok\nTESTS:pass ", "(")),
    *(("STATUS:ok\n", "none of the "), ("STATUS:ok\nTESTS:", "all good "), ("X\n", "TESTS:a\nb\n")),
    *(("STATUS:ok\nFILES_CREATED:", "a,"), ("STATUS:ok\nTESTS:pass:", "9")),
]


def assert_linear(text_of: Callable[[int], str]) -> None:
    def read(size: int) -> None:
        with contextlib.suppress(WireError):
            parse(text_of(size))

    assert grows_linearly(read, 1 << 15)


@pytest.mark.parametrize(("head", "unit"), [("", unit) for unit in REPEATED] + OPENED)
def test_one_thing_over_and_over(head: str, unit: str) -> None:
    assert_linear(lambda size: head + unit * (size // len(unit)))


@pytest.mark.parametrize("line", ["FILES_CREATED:{}.py\n", "FILES_CREATED:{} (new)\n", "- {}: x\n"])
def test_many_paths(line: str) -> None:
    assert_linear(
        lambda size: (
            "STATUS:ok\nFILES_CREATED:\n"
            + "".join(line.format(number) for number in range(size // 16))
        )
    )


def test_many_odd_paths_on_a_line() -> None:
    assert_linear(
        lambda size: "STATUS:ok\nFILES_CREATED:" + "".join(f"{n} (new)," for n in range(size // 9))
    )


def test_many_fields() -> None:
    assert_linear(
        lambda size: "STATUS:ok\n" + "".join(f"F{number}:x\n" for number in range(size // 8))
    )
