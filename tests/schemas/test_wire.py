"""The wire format: the specification's vectors, what delimits a block, and its properties."""

import re
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import wire
from schemas.wire import Dispatch, Message, Report, WireError, emit
from schemas.wire_values import OUTCOMES, STATUSES

REPORT = """\
STATUS:ok
FILES_CREATED:src/jwt.go,src/jwt_test.go
FILES_MODIFIED:go.mod
TESTS:pass:12
BUILD:pass
LEARNED:JWT tokens need 24h expiry"""

DISPATCH = """\
TASK: Implement JWT auth middleware
CONTEXT: Go backend, chi router
ACCEPTANCE: 1. Middleware validates Bearer tokens  2. Tests pass
SCOPE: src/middleware/
VERIFY: go test ./...
DONE: return STATUS format"""


def parse(text: str) -> Message | None:
    found = wire.parse(text)
    return found.message if found else None


def parse_report(text: str) -> Report | None:
    found = wire.parse_report(text)
    return found.message if found else None


def warned(text: str) -> list[tuple[int, str | None, str]]:
    found = wire.parse(text)
    assert found is not None
    return [(one.line, one.field, one.message) for one in found.warnings]


def report(text: str) -> Report:
    found = parse(text)
    assert isinstance(found, Report)
    return found


def malformed(text: str) -> WireError:
    with pytest.raises(WireError) as caught:
        parse(text)
    return caught.value


# What emit takes: text that one line carries.

LINE = (
    st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.just("\t"))
    .map(str.strip)
    .filter(bool)
)
PATHS = st.lists(LINE.map(lambda line: line.replace(",", "").strip()).filter(bool)).map(tuple)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]+", fullmatch=True)
TESTS = st.builds(
    wire.Tests,
    outcome=st.sampled_from(OUTCOMES),
    count=st.none() | st.integers(0, 999_999_999),
)


def extras(model: type[Message]) -> st.SearchStrategy[dict[str, str]]:
    taken = {"STATUS", "TASK"} | {name.upper() for name in model.model_fields}
    return st.dictionaries(NAMES.filter(lambda name: name not in taken), LINE | st.just(""))


REPORTS = st.builds(
    Report,
    status=st.sampled_from(STATUSES),
    files_created=PATHS,
    files_modified=PATHS,
    files_deleted=PATHS,
    tests=st.none() | TESTS,
    build=st.none() | st.sampled_from(OUTCOMES),
    learned=st.none() | LINE,
    error=st.none() | LINE,
    question=st.none() | LINE,
    extra=extras(Report),
)
DISPATCHES = st.builds(
    Dispatch,
    task=LINE,
    context=st.none() | LINE,
    acceptance=st.none() | LINE,
    scope=st.none() | LINE,
    verify=st.none() | LINE,
    done=st.none() | LINE,
    extra=extras(Dispatch),
)


def is_carried(message: Message) -> bool:
    """Whether it has no value that reads as another, such as a path named none."""
    try:
        emit(message)
    except WireError:
        return False
    return True


MESSAGES = (REPORTS | DISPATCHES).filter(is_carried)

# Text with the parts that matter in it far more often than chance would put them there.
PARTS = st.sampled_from(
    [
        *("STATUS", "status", "TASK", "TESTS", "FILES_CREATED", "LEARNED", "X_1", "Note", "https"),
        *(":", ": ", ":\t", "ok", "pass:12", "a.py,b.py", ",", "\n", "\r\n", "\r", "\n\n", " "),
        *(
            "**",
            "`",
            "```",
            "> ",
            "- ",
            "1. ",
            "# ",
            "\x1b",
            "\x1b[31m",
            "\x1b]0;",
            "\x07",
            "\x1b\\",
        ),
        *("\x00", "\ud800", "\ufeff", "\u2028", "é"),
    ]
)
MESSY = st.lists(PARTS | st.text(max_size=5), max_size=60).map("".join)


class TestTolerance:
    def test_the_vector_of_the_specification(self) -> None:
        for line in ("STATUS:ok", "status: ok", "Status: ok", "STATUS: ok", "STATUS:  ok"):
            assert parse(line) == Report(status="ok")
        assert parse("STATUS:ok\nstatus: ok\nStatus: ok\nSTATUS: ok") == Report(status="ok")

    @given(
        name=st.sampled_from(["STATUS", "status", "Status", "STATus"]),
        gap=st.text(" \t"),
        value=st.sampled_from(STATUSES),
        case=st.sampled_from([str.lower, str.upper, str.title]),
    )
    def test_blanks_and_case(
        self, name: str, gap: str, value: str, case: Callable[[str], str]
    ) -> None:
        assert report(f"{name}:{gap}{case(value)}{gap}").status == value

    def test_the_statuses_are_those_of_the_specification(self) -> None:
        assert " ".join(STATUSES) == (
            "ok fail partial needs_decision no_changes decomposed rejected retry fixture_gap"
        )

    @pytest.mark.parametrize("outcome", ["pass", "fail", "skip"])
    def test_outcomes(self, outcome: str) -> None:
        found = report(f"STATUS:ok\nTESTS: {outcome}\nBUILD:\t{outcome.upper()}")
        assert str(found.tests) == found.build == outcome

    def test_the_count_of_tests(self) -> None:
        found = report("STATUS:ok\nTESTS: PASS:042").tests
        assert found == wire.Tests(outcome="pass", count=42)

    def test_line_breaks_of_every_system(self) -> None:
        for newline in ("\n", "\r\n", "\r", "\r\r\n"):
            assert parse(REPORT.replace("\n", newline)) == parse(REPORT)

    @pytest.mark.parametrize(
        "line",
        [
            "**STATUS:** ok",
            "**STATUS**: ok",
            "**STATUS:ok**",
            "`STATUS`: ok",
            "`STATUS: ok`",
            "- STATUS: ok",
            "* **STATUS**: ok",
            "1. STATUS: ok",
            "## STATUS: ok",
            "> > STATUS: ok",
            "    STATUS : ok",
            "\x1b[1;32mSTATUS\x1b[0m:\x1b[38;5;2mok\x1b[K",
            "\x1b]8;;https://example.com\x1b\\STATUS:ok\x1b]8;;\x07",
            "\x1b(BSTATUS:o\x00k",
            "\ufeffSTATUS:ok",
        ],
    )
    def test_decoration(self, line: str) -> None:
        assert parse(line) == Report(status="ok")

    def test_marks_within_a_value_stay(self) -> None:
        assert report("STATUS:ok\nLEARNED:`a` beats **b**").learned == "`a` beats **b**"
        assert report("STATUS:ok\n**LEARNED:** see **b**").learned == "see **b**"


class TestFields:
    def test_a_report(self) -> None:
        assert parse(REPORT) == Report(
            status="ok",
            files_created=("src/jwt.go", "src/jwt_test.go"),
            files_modified=("go.mod",),
            tests=wire.Tests(outcome="pass", count=12),
            build="pass",
            learned="JWT tokens need 24h expiry",
        )

    def test_a_dispatch(self) -> None:
        assert parse(DISPATCH) == Dispatch(
            task="Implement JWT auth middleware",
            context="Go backend, chi router",
            acceptance="1. Middleware validates Bearer tokens  2. Tests pass",
            scope="src/middleware/",
            verify="go test ./...",
            done="return STATUS format",
        )

    def test_lists_take_blanks_and_add_up(self) -> None:
        found = report("STATUS:ok\nFILES_DELETED: a.py , b c.py,,\nFILES_DELETED:d.py")
        assert found.files_deleted == ("a.py", "b c.py", "d.py")

    def test_an_empty_value_is_an_absent_field(self) -> None:
        text = "STATUS:ok\nFILES_CREATED:\nTESTS:\nBUILD:\nERROR: \n"
        assert parse(text) == Report(status="ok")

    def test_unknown_fields_are_kept_in_order(self) -> None:
        found = report("STATUS:ok\nZETA:1\nTESTS:pass\nALPHA_2:\n")
        assert list(found.extra.items()) == [("ZETA", "1"), ("ALPHA_2", "")]

    def test_fields_of_the_other_kind_are_unknown_ones(self) -> None:
        assert report("STATUS:ok\nSCOPE:src/").extra == {"SCOPE": "src/"}

    def test_the_head_may_come_late(self) -> None:
        found = report("FILES_CREATED:a.py\nX_1:y\nSTATUS:ok")
        assert (found.files_created, found.extra) == (("a.py",), {"X_1": "y"})


class TestErrors:
    @pytest.mark.parametrize(
        ("line", "field", "allowed"),
        [
            ("STATUS:okay", "STATUS", ", ".join(STATUSES)),
            ("STATUS:", "STATUS", ", ".join(STATUSES)),
            ("TESTS:perhaps", "TESTS", "pass, fail, skip, with an optional count as in pass:12"),
            ("TESTS:pass:", "TESTS", "pass, fail, skip, with an optional count as in pass:12"),
            ("TESTS:pass:-1", "TESTS", "pass, fail, skip, with an optional count as in pass:12"),
            (
                "TESTS:pass:" + "9" * 5000,
                "TESTS",
                "pass, fail, skip, with an optional count as in ",
            ),
            ("BUILD:pass/fail", "BUILD", "pass, fail, skip"),
        ],
    )
    def test_a_wrong_value(self, line: str, field: str, allowed: str) -> None:
        head = "" if field == "STATUS" else "STATUS:ok\n"
        error = malformed(f"Prose.\n\n{head}{line}\nLEARNED:x")
        assert (error.field, error.line) == (field, 4 if head else 3)
        assert error.allowed.startswith(allowed)
        assert "\n" not in str(error)
        assert len(str(error)) < 250

    def test_the_message(self) -> None:
        assert str(malformed("STATUS:ok\nBUILD:purple")) == (
            "line 2: BUILD is 'purple'; allowed: pass, fail, skip"
        )

    def test_a_dispatch_needs_a_task(self) -> None:
        assert malformed("TASK:\nSCOPE:src/").field == "TASK"

    @pytest.mark.parametrize(("name", "other"), [("BUILD", "skip"), ("TESTS", "pass:3")])
    def test_a_field_that_says_two_things(self, name: str, other: str) -> None:
        value = "pass:2" if name == "TESTS" else "pass"
        error = malformed(f"STATUS:ok\n{name}:{value}\nERROR:x\n\n{name}:{other}")
        assert (error.field, error.line) == (name, 5)
        assert "line 2" in str(error)

    def test_two_reports_with_nothing_between(self) -> None:
        error = malformed(f"{REPORT}\nSTATUS:fail\nERROR:boom")
        assert (error.field, error.line) == ("STATUS", 7)


class TestBlocks:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "All done.",
            "The STATUS: ok",
            "STATUS ok",
            "FILES_CREATED:a.py\nTESTS:pass",
            "X: STATUS",
        ],
    )
    def test_without_a_head_it_is_neither(self, text: str) -> None:
        assert parse(text) is None

    @pytest.mark.parametrize(
        "frame",
        [
            "I did it.\n{}\n\nThat is all: bye.",
            "Note: foo\n{}\n\nhttps://example.com",
            "```\n{}\n```",
            "~~~text\n{}\n~~~\n",
            "\x1b[32m{}\x1b[0m",
        ],
    )
    def test_a_block_within_other_text(self, frame: str) -> None:
        assert parse(frame.format(REPORT)) == parse(REPORT)

    def test_prose_is_no_unknown_field_and_ends_nothing(self) -> None:
        text = "STATUS:ok\nTESTS:pass\nNote: foo\nhttps://example.com\nC:\\x\nX_1:y\n"
        tests = wire.Tests(outcome="pass")
        assert parse(text) == Report(status="ok", tests=tests, extra={"X_1": "y"})
        assert warned(text) == [(3, None, "this is of no known field, and was passed over")]

    def test_a_blank_line_may_part_the_fields_of_a_report(self) -> None:
        text = REPORT.replace("\n", "\n\n")
        assert parse(text) == parse(REPORT)
        assert parse("\n".join(f"> {line}" for line in text.split("\n"))) == parse(REPORT)

    @pytest.mark.parametrize("between", ["", "\n", "\n> ", "\nIt went on.\n", "\n```\nthen\n"])
    @pytest.mark.parametrize("later", ["BUILD:fail", "Build: fail", "- **build**: fail"])
    def test_nothing_between_hides_a_known_field(self, between: str, later: str) -> None:
        found = report(f"STATUS:ok\nTESTS:pass\n{between}{later}\n")
        assert found == Report(status="ok", tests=wire.Tests(outcome="pass"), build="fail")

    @pytest.mark.parametrize("later", ["Note: bye", "Scope: src/", "\nThanks.\n\nP_S:bye"])
    def test_a_blank_line_ends_it_before_what_is_unknown(self, later: str) -> None:
        assert parse(f"STATUS:ok\nTESTS:pass\n\n{later}\n") == parse("STATUS:ok\nTESTS:pass")

    def test_the_last_block_wins(self) -> None:
        for between in ("\n\n", "\nNow again.\n", "\n```\n```\n"):
            text = f"{REPORT}{between}STATUS:fail\nERROR:boom"
            assert report(text) == Report(status="fail", error="boom")
            assert (1, None) in [(line, field) for line, field, _ in warned(text)]

    def test_fields_before_a_blank_line_are_not_of_the_next_report(self) -> None:
        assert parse("FILES_CREATED:draft.py\n\nSTATUS:ok") == Report(status="ok")

    def test_an_incomplete_block_does_not_override_a_complete_one(self) -> None:
        assert parse(f"{REPORT}\n\nOnce more:\nFILES_CRE") == parse(REPORT)
        found = report(f"{REPORT}\n\nOnce more:\nLEARNED:half a\nFILES_CREATED:x.py\nTES")
        assert found.learned == "JWT tokens need 24h expiry; half a"
        assert found.files_created == ("src/jwt.go", "src/jwt_test.go", "x.py")

    def test_a_malformed_last_block_is_not_covered_up(self) -> None:
        assert malformed(f"{REPORT}\n\nSTATUS:o").line == 8

    def test_a_malformed_earlier_block_does_not_matter(self) -> None:
        assert parse(f"STATUS:ok|fail\n\n{REPORT}") == parse(REPORT)

    def test_the_last_of_both_kinds(self) -> None:
        assert parse(f"{DISPATCH}\n{REPORT}") == parse(REPORT)
        assert parse(f"{REPORT}\n{DISPATCH}") == parse(DISPATCH)

    def test_a_field_between_the_two_kinds(self) -> None:
        error = malformed("STATUS:ok\nTASK:build it\nTESTS:fail")
        assert (error.field, error.line) == ("TESTS", 3)

    def test_a_report_among_dispatches(self) -> None:
        assert parse_report(f"{REPORT}\n\nTask: done, all of it.") == parse(REPORT)
        assert parse_report(DISPATCH) is None


class TestEmit:
    def test_canonical_text(self) -> None:
        assert emit(report(REPORT)) == REPORT
        assert emit(Dispatch(task="t", done="d", extra={"X_1": ""})) == "TASK:t\nDONE:d\nX_1:"

    @given(MESSAGES)
    def test_round_trip(self, message: Message) -> None:
        found = parse(emit(message))
        assert found == message
        assert list(message.extra) == list(found.extra)

    @pytest.mark.parametrize(
        ("field", "message"),
        [
            ("LEARNED", Report(status="ok", learned="two\nlines")),
            ("LEARNED", Report(status="ok", learned="a\rb")),
            ("LEARNED", Report(status="ok", learned=" blank")),
            ("LEARNED", Report(status="ok", learned="")),
            ("ERROR", Report(status="fail", error="\x1b[31mred")),
            ("ERROR", Report(status="fail", error="half a character \ud800")),
            ("FILES_CREATED", Report(status="ok", files_created=("a,b",))),
            ("FILES_CREATED", Report(status="ok", files_created=("a", ""))),
            ("FILES_DELETED", Report(status="ok", files_deleted=("a\nb",))),
            ("TASK", Dispatch(task="a\n")),
            ("X_1", Report(status="ok", extra={"X_1": "a\nb"})),
            ("'x'", Report(status="ok", extra={"x": "lower case"})),
            ("'BUILD'", Report(status="ok", extra={"BUILD": "known"})),
            ("'TASK'", Report(status="ok", extra={"TASK": "a head"})),
        ],
    )
    def test_it_refuses_what_a_line_cannot_carry(self, field: str, message: Message) -> None:
        with pytest.raises(WireError) as caught:
            emit(message)
        assert caught.value.field == field
        assert caught.value.line is None

    @given(st.text(), st.text(st.characters()), st.lists(st.text(), max_size=3))
    def test_it_round_trips_or_refuses(self, learned: str, value: str, paths: list[str]) -> None:
        message = Report(
            status="ok", learned=learned, files_created=tuple(paths), extra={"X_1": value}
        )
        try:
            text = emit(message)
        except WireError:
            return
        assert parse(text) == message


class TestFieldsAsJson:
    def test_one_flat_object(self) -> None:
        fields = wire.to_fields(report("STATUS:ok\nTESTS:pass:3\nX_1:y"))
        assert fields["tests"] == {"outcome": "pass", "count": 3}
        assert (fields["status"], fields["files_created"], fields["x_1"]) == ("ok", [], "y")
        assert fields["learned"] is None

    @given(MESSAGES)
    def test_round_trip(self, message: Message) -> None:
        assert wire.from_fields(wire.to_fields(message)) == message

    def test_tests_may_be_as_on_the_wire(self) -> None:
        found = wire.from_fields({"status": "OK", "tests": "pass:3"})
        assert emit(found) == "STATUS:ok\nTESTS:pass:3"

    @pytest.mark.parametrize(
        ("field", "fields"),
        [
            ("STATUS", {}),
            ("STATUS", {"status": None}),
            ("STATUS", {"status": ["ok"]}),
            ("TESTS", {"status": "ok", "tests": {"outcome": "pass", "count": -1}}),
            ("FILES_CREATED", {"status": "ok", "files_created": "a.py"}),
            ("FILES_CREATED", {"status": "ok", "files_created": ["a.py", 3]}),
            ("X_1", {"status": "ok", "x_1": 3}),
            ("'Learned'", {"status": "ok", "Learned": "x"}),
            ("'a b'", {"status": "ok", "a b": "x"}),
        ],
    )
    def test_it_names_what_is_wrong(self, field: str, fields: dict[str, object]) -> None:
        with pytest.raises(WireError) as caught:
            wire.from_fields(fields)
        assert caught.value.field == field


class TestAnyText:
    @given(st.text(st.characters()) | MESSY)
    def test_it_is_parsed_or_refused_and_what_is_parsed_can_be_emitted(self, text: str) -> None:
        found: Message | None = None
        line: int | None = 1
        try:
            found = parse(text)
        except WireError as error:
            line = error.line
        assert line in range(1, len(re.split(r"[\r\n]", text)) + 1)
        assert found is None or parse(emit(found)) == found

    @given(MESSAGES, st.sampled_from(["", "> ", "- ", "    ", "\x1b[2K\x1b[1m"]))
    def test_dressing_changes_nothing(self, message: Message, prefix: str) -> None:
        lines = [f"{prefix}{line}\x1b[0m  " for line in emit(message).split("\n")]
        block = "\r\n".join(lines)
        assert parse(f"Here it is:\n\n```text\n{block}\n```\n\nNote: thanks.\n") == message

    @given(MESSY, MESSAGES)
    def test_what_comes_before_changes_nothing(self, before: str, message: Message) -> None:
        assert parse(f"{before}\n.\n{emit(message)}") == message


class TestPrompt:
    def test_the_parser_accepts_what_it_teaches(self) -> None:
        found = report(wire.PROMPT)
        assert emit(found) in wire.PROMPT
        assert found.extra == {}

    def test_it_teaches_every_field_and_value(self) -> None:
        for model in get_args(Message):
            for name in set(model.model_fields) - {"extra"}:
                assert name.upper() in wire.PROMPT
        for value in STATUSES + OUTCOMES:
            assert value in wire.PROMPT
