"""Which lines of a text are fields, which go on with a value, and which block has them."""

import pytest

from schemas import wire
from schemas.wire_doubt import Passed
from schemas.wire_text import DISPATCH_FIELDS, REPORT_FIELDS, FieldBlock, Note, blocks, line_of


def only(text: str) -> FieldBlock:
    (block,) = blocks(text, ("STATUS",))
    return block


def values(text: str) -> dict[str, str]:
    return {one.name: one.value for one in blocks(text, ("STATUS",))[-1].entries}


def noted(text: str) -> list[int]:
    return [note.number for note in only(text).notes]


def test_the_known_fields_are_those_of_the_models() -> None:
    for model, fields in ((wire.Report, REPORT_FIELDS), (wire.Dispatch, DISPATCH_FIELDS)):
        assert tuple(name.upper() for name in model.model_fields if name != "extra") == fields


@pytest.mark.parametrize(
    "line",
    [
        *("TESTS:fail", "tests: fail", "Tests :\tfail", "TESTS： fail", "**TESTS:** fail"),
        *(
            "**TESTS**: fail",
            "**TESTS: fail**",
            "__Tests__: fail",
            "_TESTS:_ fail",
            "`TESTS: fail`",
        ),
        *("- [x] TESTS: fail", "* **Tests:** fail", "  12) TESTS: fail", "> > - TESTS: fail"),
        *("### TESTS: fail", "❌ TESTS: fail", "| TESTS | fail |", "| **Tests:** | fail |"),
        *("TESTS (unit): fail", "[TESTS]: fail", "T\u200bESTS\u200b: fail", "ＴＥＳＴＳ: fail"),
        *('"tests": fail', "// TESTS: fail", "- 1. TESTS: fail", "[12:00] TESTS: fail"),
    ],
)
def test_a_field_in_whatever_it_is_dressed(line: str) -> None:
    found = line_of(7, line)
    assert (found.number, found.name, found.text) == (7, "TESTS", "fail")


@pytest.mark.parametrize(
    "line",
    [
        *("The TESTS: fail", "TESTS fail", "Mytests: fail", "TESTS_2 fail", "Note: TESTS: fail"),
        *("https://example.com", "C:\\tests", "A:b", "x" * 100 + ":", "| a | TESTS |", ":", ""),
    ],
)
def test_what_is_no_field(line: str) -> None:
    assert line_of(1, line).name is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Files Created: a", "FILES_CREATED"),
        ("files-created: a", "FILES_CREATED"),
        ("NEXT STEPS: a", "NEXT_STEPS"),
        ("A__B_: a", "A__B_"),
    ],
)
def test_a_name_with_blanks(line: str, name: str) -> None:
    assert line_of(1, line).name == name


@pytest.mark.parametrize(
    "between",
    [
        *("two", "- two\n- three", "* two", "1. two", "  two", "two\n\n", "\n", "note: two"),
        *("\n\nprose\n\nmore", "```", "\n---\n", "> two", "| two | three |", "TASK: two", "{"),
    ],
)
@pytest.mark.parametrize("open_field", ["LEARNED:one", "TESTS:pass", "X_1:y", "FILES_CREATED:a.py"])
def test_no_line_hides_a_field_behind_it(open_field: str, between: str) -> None:
    assert values(f"STATUS:ok\n{open_field}\n{between}\nBUILD:fail")["BUILD"] == "fail"


@pytest.mark.parametrize("separator", ["\v", "\f", "\x85", "\u2028", "\u2029", "\r", "\r\r\n"])
def test_what_shows_as_the_end_of_a_line_is_one(separator: str) -> None:
    found = blocks(f"STATUS:ok{separator}TESTS:fail\nBUILD:pass", ("STATUS",))[-1]
    assert [one.name for one in found.entries] == ["STATUS", "TESTS", "BUILD"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("LEARNED:one\ntwo\n\nthree", "one two"),
        ("LEARNED:one\n  two\n\n  three", "one two"),
        ("LEARNED:\n- one\n- two\n\n- three\n\nprose", "one; two; three"),
        ("LEARNED:\n\n* one\n* API: two", "one; API: two"),
        ("LEARNED:one\nhttps://example.com", "one https://example.com"),
        ("LEARNED:one\nNote: two", "one"),
        ("LEARNED:one\n```\ntwo\n```", "one"),
        ("**LEARNED:**\n\n  one\n", "one"),
    ],
)
def test_text_goes_on(text: str, value: str) -> None:
    assert values(f"STATUS:ok\n{text}")["LEARNED"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("FILES_CREATED:\na.py\nb.py", "a.py b.py"),
        ("FILES_CREATED:a.py,\nb.py", "a.py, b.py"),
        ("FILES_CREATED:a.py\n- b.py", "a.py; b.py"),
        ("FILES_CREATED:a.py\nThat is all.", "a.py"),
        ("FILES_CREATED:a.py\nDone.", "a.py"),
        ("FILES_CREATED:\nThat is all.", ""),
    ],
)
def test_paths_go_on(text: str, value: str) -> None:
    assert values(f"STATUS:ok\n{text}")["FILES_CREATED"] == value


def test_one_word_goes_on_only_while_it_lacks() -> None:
    assert values("STATUS:\nok\nTESTS:\n\nfail\nBUILD:pass\nfail")["BUILD"] == "pass"
    assert values("STATUS:ok\nTESTS:\n\nfail")["TESTS"] == "fail"
    assert values("STATUS:ok\nTESTS:\n\nThat is all.")["TESTS"] == ""


def test_a_head_takes_what_stands_right_before_it() -> None:
    assert values("FILES_CREATED:\n- a.py\nX_1:y\nSTATUS:ok") == {
        "FILES_CREATED": "a.py",
        "X_1": "y",
        "STATUS": "ok",
    }
    first, second = blocks("STATUS:ok\nprose\n\nTESTS:fail\nX_1:y\nSTATUS:ok", ("STATUS",))
    assert [one.name for one in first.entries] == ["STATUS"]
    assert [one.name for one in second.entries] == ["TESTS", "X_1", "STATUS"]


def test_prose_before_a_head_takes_fields_from_it_and_a_blank_line_keeps_them_apart() -> None:
    apart, block = blocks("TESTS:fail\nThen it went on.\nSTATUS:ok", ("STATUS",))
    assert ([one.name for one in apart.entries], block.number) == (["TESTS"], 3)
    apart, block = blocks("TESTS:fail\n\nSTATUS:ok", ("STATUS",))
    assert (apart.head, apart.number, block.head) == (None, 1, "STATUS")


def test_the_same_head_right_behind_its_fields_begins_nothing() -> None:
    assert len(blocks("STATUS:ok\nTESTS:fail\nSTATUS:ok\nBUILD:fail", ("STATUS",))) == 1
    assert len(blocks("STATUS:ok\nTESTS:fail\n\nSTATUS:ok", ("STATUS",))) == 2


def test_the_fields_of_a_report_behind_a_task_are_still_the_reports() -> None:
    text = "STATUS:ok\nTASK:more\nCONTEXT:x\nX_1:y\nTESTS:fail"
    assert values(text) == {"STATUS": "ok", "TESTS": "fail"}
    assert [one.head for one in blocks(text, ("STATUS", "TASK"))] == ["STATUS", "TASK"]


def test_a_field_within_a_list_is_noted() -> None:
    assert only("STATUS:ok\nLEARNED:\n- one\n- Error: two\n").notes == [
        Note(4, "ERROR", "is within the list of LEARNED, and is read as a field")
    ]


def test_what_no_field_has_is_noted_once_a_field_follows() -> None:
    assert noted("STATUS:ok\n\nprose\nmore\n\nTESTS:pass\n\nprose") == [3]
    assert noted("STATUS:ok\nprose\nmore\nTESTS:pass") == [2]
    assert noted("STATUS:ok\nTESTS:pass\nnotes: two") == [3]
    assert noted("STATUS:ok\n\nThat is all.\n---\n```") == []


def passed(text: str) -> list[Passed]:
    return blocks(text, ("STATUS",))[-1].passed


def test_what_no_field_has_is_kept_with_what_it_stands_under() -> None:
    found = passed("One\nX_1: y\n\nSTATUS:ok\nTESTS:pass\n- unit\n\n  deep\n\nprose")
    assert sorted(found) == [
        Passed(1, "One"),
        Passed(2, "X_1: y"),
        Passed(6, "unit", "TESTS"),
        Passed(8, "deep", "TESTS"),
        Passed(10, "prose"),
    ]


def test_a_heading_holds_the_line_behind_it() -> None:
    assert passed("STATUS:ok\n\n## Build\n\nfine\n\nprose")[1:] == [
        Passed(5, "fine", "BUILD"),
        Passed(7, "prose"),
    ]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("STATUS:ok", False),
        ("> STATUS:ok", True),
        ("```\nSTATUS:ok\n```", True),
        ("```\nx\n```\nSTATUS:ok", False),
        ("```\n```text\nSTATUS:ok\n```", True),
    ],
)
def test_a_head_as_an_example(text: str, quoted: bool) -> None:
    assert blocks(text, ("STATUS",))[-1].quoted is quoted
