"""The text that teaches the format."""

from typing import get_args

from schemas import wire
from schemas.wire import Message, emit
from schemas.wire_values import OUTCOMES, STATUSES
from tests.schemas.wire_messages import report


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
