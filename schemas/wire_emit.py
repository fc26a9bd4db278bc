"""Writes a message as canonical text (`schemas.wire`)."""

from typing import Any

from schemas.plain import NOISE
from schemas.wire_message import (
    FIELDS,
    MODELS,
    Message,
    Report,
    Tests,
    WireError,
    allowed,
    shortened,
)
from schemas.wire_reader import parse
from schemas.wire_text import BREAK, NAME, SEEN_BREAK


def emit(message: Message) -> str:
    """The canonical text, without a newline at its end: `parse(emit(x)) == x`.

    Raises WireError for a value that one line can't carry.
    """
    known = FIELDS["STATUS" if isinstance(message, Report) else "TASK"]
    lines = []
    for name in known:
        value = getattr(message, name.lower())
        if value not in (None, ()):
            lines.append(f"{name}:{_value(name, value)}")
    for name, value in message.extra.items():
        if not NAME.fullmatch(name) or name in known or name in MODELS:
            right = "two or more of A-Z, 0-9 and _, beginning with a letter, not a known field"
            raise WireError(repr(name), "can't name an extra field", right)
        lines.append(f"{name}:{_checked(name, value)}")
    text = "\n".join(lines)
    _check_read_back(message, text)
    return text


def _value(name: str, value: str | Tests | tuple[str, ...]) -> str:
    if not isinstance(value, tuple):
        return _checked(name, str(value), empty=False)
    for path in value:
        if "," in path:
            raise WireError(name, f"has {shortened(path)}", allowed(name))
        _checked(name, path, empty=False)
    return ",".join(value)


def _checked(name: str, value: str, *, empty: bool = True) -> str:
    """`value`, if a line can carry it unchanged. Raises WireError."""
    lines = BREAK.search(value) or SEEN_BREAK.search(value)
    broken = NOISE.search(value) or lines or value != value.strip()
    if broken or not (value or empty):
        raise WireError(name, f"is {shortened(value)}", allowed(name))
    return value


def _check_read_back(message: Message, text: str) -> None:
    """Raises WireError for a value that is read back as another, such as a path named none."""
    try:
        parsed = parse(text)
    except WireError as error:
        raise WireError(error.field, "has a value that can't be read back", error.allowed) from None
    known = _flat(parsed.message) if parsed else {}
    for name, value in _flat(message).items():
        if known.get(name) != value:
            problem = f"is {shortened(value)}, which reads as {shortened(known.get(name))}"
            raise WireError(name, problem, "a value that reads as itself only")


def _flat(message: Message) -> dict[str, Any]:
    members = {name.upper(): getattr(message, name) for name in type(message).model_fields}
    del members["EXTRA"]
    return members | message.extra
