from typing import Any

import pytest

from proof.validators import PROBLEMS_MAX, Misfit, SchemaValidator


def test_what_does_not_fit_is_said_with_its_place() -> None:
    schema = {"type": "object", "properties": {"a": {"items": {"type": "integer"}}}}
    validator = SchemaValidator(schema)
    assert validator.accepts({"a": [1]})
    assert validator.misfits({"a": [1]}) == []
    assert validator.misfits({"a": [1, "x"]}) == [Misfit("/a/1", '"x" is not of type "integer"')]


def test_misfits_are_bounded() -> None:
    misfits = SchemaValidator({"items": {"type": "null"}}).misfits([1] * 100)
    assert len(misfits) == PROBLEMS_MAX
    (long,) = SchemaValidator({"type": "null"}).misfits("\x1b[31m" + "x" * 10_000)
    assert len(long.why) <= 300
    assert "\x1b" not in long.why


def test_formats_are_checked() -> None:
    validator = SchemaValidator({"type": "string", "format": "date"})
    assert validator.accepts("2026-01-31")
    assert not validator.accepts("tomorrow")
    assert SchemaValidator({"format": "ours"}).accepts("anything")


@pytest.mark.parametrize(
    ("schema", "ignored"),
    [
        ({"properties": {"a": {"pattern": "["}}}, ("/properties/a/pattern",)),
        ({"pattern": r"\p{Unknown}", "type": "string"}, ("/pattern",)),
        ({"type": "strnig", "required": "a"}, ("/required", "/type")),
        ({"allOf": [{"pattern": "("}]}, ("/allOf/0/pattern",)),
    ],
)
def test_what_no_validator_reads_is_ignored_and_named(
    schema: dict[str, Any], ignored: tuple[str, ...]
) -> None:
    validator = SchemaValidator(schema)
    assert tuple(sorted(validator.ignored)) == ignored
    assert validator.accepts({"a": "x"}) == (schema.get("type") != "string")


def test_what_is_no_json_fits_nothing() -> None:
    validator = SchemaValidator({})
    assert not validator.accepts("\ud800")
    assert len(validator.misfits("\ud800")) == 1
    assert validator.accepts("\U0001f600")
