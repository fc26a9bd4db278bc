"""Messages as flat JSON objects."""

import pytest
from hypothesis import given

from schemas import wire
from schemas.wire import Message, WireError, emit
from tests.schemas.wire_messages import MESSAGES, report


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
