"""Reads a content that is one JSON Schema, or one shape in shorthand: a model, or an event."""

from collections.abc import Mapping
from typing import Any, Literal

from contracts.model import Draft, Interface, Located, Operation, Part
from contracts.reading import ContentReading, at, shown
from contracts.refs import FILES
from contracts.schema_check import check_schemas
from contracts.shorthand import ShorthandReader, is_schema, is_shorthand

KEY = "model"
MESSAGE = "message"
"""The response that holds the schema of what a provider emits."""
JSON = "application/json"
_DRAFTS: Mapping[str, Draft] = {
    "json-schema.org/draft/2020-12/schema": "2020-12",
    "json-schema.org/draft/2019-09/schema": "2020-12",
    "json-schema.org/draft-07/schema": "draft-07",
    "json-schema.org/draft-06/schema": "draft-07",
}
"""Drafts by their name in `$schema`. The older ones beside those are read as what followed them."""


def draft_of(schema: Any) -> Draft | None:
    """The draft that a schema names; None if it names none that is known."""
    name = schema.get("$schema") if isinstance(schema, Mapping) else None
    if not isinstance(name, str):
        return None
    plain = name.partition("://")[2].rstrip("#")
    return _DRAFTS.get(plain)


def is_json_schema(content: Mapping[str, Any]) -> bool:
    return is_schema(content) or draft_of(content) is not None


def is_shorthand_model(content: Mapping[str, Any]) -> bool:
    """Whether a content is shorthand throughout."""
    return is_shorthand({name: part for name, part in content.items() if name != FILES})


def read_json_schema(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """A schema as what a provider emits."""
    reading = ContentReading(content)
    root = Located(content, ())
    draft = draft_of(content)
    if draft is None and "$schema" in content:
        right = '"https://json-schema.org/draft/2020-12/schema" or "…/draft-07/schema#"'
        why = f'"$schema" is {right}; this is {shown(content["$schema"])}.'
        reading.misfit(at(root, "$schema"), why)
    check_schemas(reading, [root], draft or "2020-12")
    operation = _model(root, contract_type)
    return reading.interface("json-schema", draft or "2020-12", [operation])


def read_shorthand(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """A shape in shorthand as what a provider emits."""
    reading = ContentReading(content)
    shape = Located({name: part for name, part in content.items() if name != FILES}, ())
    shorthand = ShorthandReader(reading.misfit)
    schema = Located(shorthand.schema(shape), ())
    check_schemas(reading, shorthand.schemas, "2020-12")
    return reading.interface("shorthand", "2020-12", [_model(schema, contract_type)])


def _model(schema: Located, contract_type: str | None) -> Operation:
    kind: Literal["event", "model"] = "event" if contract_type == "event_schema" else "model"
    return Operation(KEY, kind, (), Part(()), {MESSAGE: Part((), (), {JSON: schema}, True)})
