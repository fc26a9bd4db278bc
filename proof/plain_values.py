"""One plausible value of a schema, the same each time: what a mock answers, a probe tries first.

Examples and defaults that the schema gives come first. Where such a value doesn't fit, hypothesis
makes one.
"""

from collections.abc import Mapping
from typing import Any

from proof.patterns import of_length, python_pattern, sized
from proof.strategies import NoSuchValue, SchemaValues
from proof.validators import SchemaValidator

DEPTH_MAX = 6
"""Levels below which members that may be absent are."""
ENDS_AT = 30
SCHEMAS_MAX = 200_000
"""Schemas that are looked at for one value: a few lines can describe one without end."""
ITEMS_MAX = 100
LENGTH_MAX = 100_000
PLAIN = "text"
PLAIN_FORMATS: Mapping[str, str] = {
    "date": "2026-01-15",
    "time": "10:30:00Z",
    "date-time": "2026-01-15T10:30:00Z",
    "duration": "P1D",
    "email": "ana@example.com",
    "idn-email": "ana@example.com",
    "hostname": "www.example.com",
    "idn-hostname": "www.example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/1",
    "iri": "https://example.com/1",
    "uri-reference": "/1",
    "iri-reference": "/1",
    "uuid": "0198c0df-0000-4000-8000-000000000001",
    "json-pointer": "/a",
    "byte": "dGV4dA==",
}


class _Endless(Exception):
    """A schema whose values have no end, as far as was looked."""


class _Source:
    """What schemas refer to, and how many more of them are looked at for one value."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self.left = SCHEMAS_MAX

    def take(self) -> None:
        """Raises `NoSuchValue` for a value that would be too large."""
        self.left -= 1
        if self.left < 0:
            raise NoSuchValue


def plain_value(schema: Mapping[str, Any], seed: int) -> Any:
    """A value of a schema that stands alone. Raises `NoSuchValue` if none could be made."""
    validator = SchemaValidator(schema)
    try:
        value = _value(schema, _Source(schema.get("$defs", {})), DEPTH_MAX)
    except _Endless:
        return made_value(schema, seed)
    return value if validator.accepts(value) else made_value(schema, seed)


def plausible_value(schema: Mapping[str, Any], depth: int | None) -> Any:
    """A value as a schema that stands alone suggests it, which need not fit. Members that may be
    absent are there down to `depth` levels, by default some. Raises `NoSuchValue`."""
    try:
        source = _Source(schema.get("$defs", {}))
        return _value(schema, source, DEPTH_MAX if depth is None else depth)
    except (_Endless, NoSuchValue):
        raise NoSuchValue from None


def made_value(schema: Mapping[str, Any], seed: int) -> Any:
    """A value that hypothesis makes of a schema: that of the seed. Raises `NoSuchValue`."""
    return drawn(SchemaValues(schema).strategy(), seed)


def drawn(strategy: Any, seed: int) -> Any:
    """One of the first values of a strategy. Raises `NoSuchValue`."""
    return drawn_values(strategy, seed, 3)[-1]


def drawn_values(strategy: Any, seed: int, count: int) -> list[Any]:
    """The first values of a strategy, the same for the same seed, or as many as there are. Raises
    `NoSuchValue` for none."""
    import hypothesis

    values: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(strategy)
    def draw(value: Any) -> None:
        values.append(value)

    try:
        draw()
    except hypothesis.errors.Unsatisfiable:
        raise NoSuchValue from None
    return values


def _value(schema: Any, source: _Source, depth: int) -> Any:
    source.take()
    if not isinstance(schema, Mapping):
        return {}
    if depth < -ENDS_AT:
        raise _Endless
    for known in ("const", "default"):
        if known in schema:
            return schema[known]
    for listed in ("examples", "enum"):
        if isinstance(schema.get(listed), list) and schema[listed]:
            return schema[listed][0]
    if isinstance(ref := schema.get("$ref"), str):
        target = source.definitions.get(ref.removeprefix("#/$defs/"), {})
        own = {name: part for name, part in schema.items() if name != "$ref"}
        return _joined([target, own] if own else [target], source, depth - 1)
    if isinstance(parts := schema.get("allOf"), list) and parts:
        own = {name: part for name, part in schema.items() if name != "allOf"}
        return _joined([own, *parts] if own else parts, source, depth)
    for choice in ("oneOf", "anyOf"):
        if isinstance(parts := schema.get(choice), list) and parts:
            own = {name: part for name, part in schema.items() if name != choice}
            return _joined([own, parts[0]] if own else [parts[0]], source, depth)
    return _of_type(schema, source, depth)


def _joined(parts: list[Any], source: _Source, depth: int) -> Any:
    """A value of schemas that all hold: the members of each, if they are objects."""
    values = [_value(part, source, depth) for part in parts]
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) == len(values):
        return {name: value for part in objects for name, value in part.items()}
    return next(value for value in values if not isinstance(value, dict))


def _of_type(schema: Mapping[str, Any], source: _Source, depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind is None:
        kind = "array" if "items" in schema else "object"
    if kind == "object":
        return _object(schema, source, depth)
    if kind == "array":
        return _array(schema, source, depth)
    if kind == "string":
        return _text(schema)
    if kind in ("integer", "number"):
        return _number(schema, kind)
    return True if kind == "boolean" else None


def _object(schema: Mapping[str, Any], source: _Source, depth: int) -> Any:
    members = schema.get("properties", {})
    required = schema.get("required", [])
    names = [name for name in members if name in required or depth > 0]
    names += [name for name in required if name not in members]
    return {name: _value(members.get(name, {}), source, depth - 1) for name in names}


def _array(schema: Mapping[str, Any], source: _Source, depth: int) -> Any:
    least = schema.get("minItems", 0)
    count = max(min(int(least), ITEMS_MAX), 1 if depth > 0 and schema.get("maxItems") != 0 else 0)
    first = schema.get("prefixItems", [])[:count]
    items = [_value(part, source, depth - 1) for part in first]
    item = schema.get("items", {})
    return items + [_value(item, source, depth - 1) for _ in range(count - len(items))]


def _text(schema: Mapping[str, Any]) -> Any:
    least = min(int(schema.get("minLength", 0)), LENGTH_MAX)
    most = None if "maxLength" not in schema else int(schema["maxLength"])
    if isinstance(given := schema.get("pattern"), str) and (plain := python_pattern(given)):
        from hypothesis import errors
        from hypothesis import strategies as st

        letters = st.characters(min_codepoint=32, max_codepoint=126)
        try:
            text = drawn(
                st.from_regex(of_length(plain, least, most), fullmatch=True, alphabet=letters), 0
            )
        except errors.InvalidArgument:
            return PLAIN
        return sized(text, [plain], least, most) or text
    text = PLAIN_FORMATS.get(str(schema.get("format")), PLAIN)
    text *= -(-max(least, 1) // len(text))
    return text if most is None else text[:most]


def _number(schema: Mapping[str, Any], kind: str) -> Any:
    low, high = schema.get("minimum"), schema.get("maximum")
    step = schema.get("multipleOf", 1)
    value = low if low is not None else min(1, high) if high is not None else 1
    if "exclusiveMinimum" in schema:
        value = max(value, schema["exclusiveMinimum"] + step)
    if step != 1:
        value = -(-value // step) * step
    return int(value) if kind == "integer" else value
