"""What all wire models share: naming, strictness, limits, times."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest
from pydantic import TypeAdapter, ValidationError

import schemas
from schemas.base import (
    LIST_MAX,
    NAME_MAX,
    Identifier,
    Model,
    Params,
    Result,
    Strings,
    Timestamp,
    WireObject,
)


class Call(Params):
    project_id: Identifier


class Answer(Result):
    project_id: Identifier


class Thing(WireObject):
    project_id: Identifier


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-21T09:30:00",
        "2026-02-21T09:30:00Z",
        "2026-02-21T09:30:00.000+00:00",
        "2026-02-21T11:30:00+02:00",
        "2026-02-21 09:30",
    ],
)
def test_a_time_without_an_offset_is_utc(text: str) -> None:
    assert TypeAdapter(Timestamp).validate_python(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30T00:00:00",
        "1969-12-31T23:59:59",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValidationError, match="should be an ISO 8601 time such as 2026-02-21T"):
        TypeAdapter(Timestamp).validate_python(text)


def test_data_types_are_snake_case_and_methods_camel_case() -> None:
    """CACP 2.0, Data Types and Methods."""
    assert Thing.model_validate({"project_id": "p"}).project_id == "p"
    assert Call.model_validate({"projectId": "p"}).project_id == "p"
    assert Answer(project_id="p").model_dump(by_alias=True) == {"projectId": "p"}


@pytest.mark.parametrize(
    ("model", "name", "unknown"),
    [
        (Call, "projectId", "project_id"),
        (Thing, "project_id", "projectId"),
        (Call, "projectId", "x"),
    ],
)
def test_an_unknown_member_is_refused_by_name(model: type[Params], name: str, unknown: str) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate({name: "p", unknown: "p"})
    (error,) = refused.value.errors()
    assert (error["type"], error["loc"]) == ("extra_forbidden", (unknown,))


@pytest.mark.parametrize(
    ("text", "accepted"), [("", False), ("x", True), ("x" * NAME_MAX, True), ("x" * 201, False)]
)
def test_an_identifier_has_1_to_200_characters(text: str, accepted: bool) -> None:
    if accepted:
        assert TypeAdapter(Identifier).validate_python(text) == text
        return
    with pytest.raises(ValidationError, match=r"at (least 1|most 200) character"):
        TypeAdapter(Identifier).validate_python(text)


def test_lists_are_limited() -> None:
    with pytest.raises(ValidationError, match="at most 1000 items"):
        TypeAdapter(Strings).validate_python(["x"] * (LIST_MAX + 1))


def test_every_model_of_the_protocol_can_be_built() -> None:
    """They are built when they are first used: one that can't be would fail in a call."""
    for module in iter_modules(schemas.__path__, "schemas."):
        import_module(module.name)
    for model in _models(Model):
        assert model.model_rebuild(raise_errors=True) is not False


def _models(base: type[Model]) -> Iterator[type[Model]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)
