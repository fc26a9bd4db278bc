"""A message as one flat JSON object, and back (`schemas.wire`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.wire_message import FIELDS, MODELS, Message, WireError, WireWarning, make_message
from schemas.wire_text import NAME

_WARNINGS = "warnings"


def to_fields(message: Message, warnings: Sequence[WireWarning] | None = None) -> dict[str, Any]:
    """Every known field and the extra ones, by lower-case name.

    With `warnings`, the member of that name holds them. An extra field WARNINGS is then one more of
    them, without a line.
    """
    fields = message.model_dump(mode="json", exclude={"extra"})
    fields |= {name.lower(): value for name, value in message.extra.items()}
    if warnings is not None:
        listed = [warning.model_dump() for warning in warnings]
        if (extra := fields.get(_WARNINGS)) is not None:
            listed.append({"line": None, "field": _WARNINGS.upper(), "message": extra})
        fields[_WARNINGS] = listed
    return fields


def from_fields(fields: Mapping[str, Any]) -> Message:
    """The inverse of `to_fields`; absent and null members are alike. Raises WireError."""
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    head = next((head for head in MODELS if head.lower() in fields), None)
    if head is None:
        raise WireError("STATUS", "is missing, and so is TASK", "one of the two")
    for name, value in fields.items():
        if name != name.lower() or not NAME.fullmatch(name.upper()):
            raise WireError(
                repr(name), "is not a field name", "lower-case names, as in files_created"
            )
        if name == _WARNINGS and isinstance(value, list):
            without_line = [
                item for item in value if isinstance(item, dict) and item.get("line") is None
            ]
            extra |= {_WARNINGS.upper(): item.get("message") for item in without_line}
        elif value is None:
            continue
        elif name.upper() in FIELDS[head]:
            known[name] = value
        else:
            extra[name.upper()] = value
    return make_message(head, known | {"extra": extra}, {})
