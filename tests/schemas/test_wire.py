"""The wire format: the specification's vectors, what delimits a block, and its properties."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import wire
from schemas.wire import Dispatch, Message, Report, WireError, emit
from schemas.wire_values import STATUSES
from tests.schemas.wire_messages import (
    DISPATCH,
    MESSAGES,
    MESSY,
    REPORT,
    malformed,
    parse,
    parse_report,
    report,
    warned,
)


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
        assert warned(text) == [(3, None, "this belongs to no known field and was ignored")]

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
