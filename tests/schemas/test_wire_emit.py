"""Messages as canonical text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire import Dispatch, Message, Report, WireError, emit
from tests.schemas.wire_messages import MESSAGES, REPORT, parse, report


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
