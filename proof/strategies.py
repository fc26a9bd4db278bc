"""Values of a schema, drawn by hypothesis: of any size and strangeness, and small where they fail.

A schema is brought into its canonical form first (`jsonschema_rs.canonicalize`): it has merged what
joins schemas, and knows what can't be.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from proof.patterns import is_in, of_length, python_pattern, sized
from proof.validators import SchemaValidator

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy
    from jsonschema_rs import CanonicalSchema, canonical

DEPTH_MAX = 4
"""Levels of values within one another; below them only what is needed is made."""
TRIES = 4
LEVELS_MAX = 50
"""A value that needs more levels than this is not made."""
MEMBERS_MAX = 12
"""Members beyond the required ones of an object that describes very many."""
MORE_MEMBERS = 2
MORE_ITEMS = 3
TEXT_MAX = 20
SIZE_MAX = 200
LEAST_SIZES: Mapping[str, int] = {
    "minLength": 100_000,
    "minItems": 1_000,
    "minContains": 1_000,
    "minProperties": 1_000,
}
"""Values of schemas that ask for more are not made."""
SAFE = 2**53 - 1
"""Whole numbers beyond it are not the same in every language (RFC 7493)."""
FORMATS: Mapping[str, str] = {
    "date": r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])",
    "time": r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
    "date-time": r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
    "duration": r"P([1-9]D|T[1-9]H|T[1-9][0-9]?M)",
    "email": r"[a-z][a-z0-9]{0,8}@example\.(com|org)",
    "idn-email": r"[a-z][a-z0-9]{0,8}@example\.(com|org)",
    "hostname": r"[a-z][a-z0-9]{0,8}\.example\.(com|org)",
    "idn-hostname": r"[a-z][a-z0-9]{0,8}\.example\.(com|org)",
    "ipv4": r"(25[0-5]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|1[0-9]{2}|[1-9]?[0-9])){3}",
    "ipv6": r"[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}",
    "uri": r"https://example\.(com|org)/[a-z0-9]{0,8}",
    "uri-reference": r"/[a-z0-9]{0,8}",
    "iri": r"https://example\.(com|org)/[a-z0-9]{0,8}",
    "iri-reference": r"/[a-z0-9]{0,8}",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "json-pointer": r"(/[a-z0-9]{0,4}){0,3}",
    "relative-json-pointer": r"[0-9](/[a-z0-9]{0,4}){0,3}",
    "regex": r"[a-z]{0,8}",
    "uri-template": r"/[a-z]{0,4}(\{[a-z]{1,4}\})?",
}
"""Texts of a format, as a regular expression."""


class NoSuchValue(Exception):
    """No value fits a schema, or none that is made; the message says why, if it is not empty."""


class SchemaValues:
    """The values of one schema. Raises `NoSuchValue` if it has none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import jsonschema_rs
        from jsonschema_rs import canonical

        _check_sizes(schema)
        self.validator = SchemaValidator(schema)
        self._root = jsonschema_rs.canonicalize(
            self.validator.schema, validate_formats=True, offline=True
        )
        if self._root.satisfiability() == canonical.Satisfiability.NO:
            raise NoSuchValue
        self._heights: dict[str, float] = {}
        self._targets: dict[str, CanonicalSchema | None] = {}

    def strategy(self, characters: "SearchStrategy[str] | None" = None) -> "SearchStrategy[Any]":
        """Values that fit, as often as they can be made; texts are of `characters`."""
        from hypothesis import reject
        from hypothesis import strategies as st

        letters = st.characters(codec="utf-8") if characters is None else characters

        @st.composite
        def values(draw: Any) -> Any:
            for _ in range(TRIES):
                value = _Maker(self, draw, letters).value(self._root, 0)
                if self.validator.accepts(value):
                    return value
            return reject()

        return values()

    def target(self, uri: str) -> "CanonicalSchema | None":
        if uri not in self._targets:
            self._targets[uri] = self._root.definition(uri)
        return self._targets[uri]

    def height(self, schema: "CanonicalSchema") -> float:
        """How many levels the flattest value has; infinite for one that would never end."""
        from jsonschema_rs import canonical

        match schema.view():
            case canonical.ReferenceView(uri=uri):
                if uri not in self._heights:
                    self._heights[uri] = math.inf
                    target = self.target(uri)
                    self._heights[uri] = 0 if target is None else self.height(target)
                return self._heights[uri]
            case canonical.AnyOfView(branches=branches) | canonical.OneOfView(branches=branches):
                return min(map(self.height, branches))
            case canonical.AllOfView(branches=branches):
                return max(map(self.height, branches))
            case canonical.ObjectView() as view:
                needed = [
                    self.height(view.properties[n]) for n in view.required if n in view.properties
                ]
                return 1 + max(needed, default=0)
            case canonical.ArrayView() as view:
                items = [*view.prefix_items, *([view.items] if view.items else [])]
                return 1 + (max(map(self.height, items)) if view.min_items and items else 0)
        return 0


class _Maker:
    """Makes one value."""

    def __init__(
        self, values: SchemaValues, draw: "DrawFn", letters: "SearchStrategy[str]"
    ) -> None:
        self.values, self.draw, self.letters = values, draw, letters

    def value(self, schema: "CanonicalSchema", depth: int) -> Any:
        from hypothesis import strategies as st
        from jsonschema_rs import canonical

        match schema.view():
            case canonical.MultiTypeView(types=types):
                return self._of_type(self.draw(st.sampled_from(types)), depth)
            case canonical.TypedGroupView(type_name=name):
                return self._of_type(name, depth)
            case canonical.ConstView(value=value):
                return value
            case canonical.EnumView(values=choices):
                return self.draw(st.sampled_from(choices))
            case canonical.StringView() as view:
                return self._text(view)
            case canonical.IntegerView() as view:
                return self._integer(view)
            case canonical.NumberView() as view:
                return self._number(view)
            case canonical.ArrayView() as view:
                return self._array(view, depth)
            case canonical.ObjectView() as view:
                return self._object(view, depth)
            case canonical.ReferenceView(uri=uri):
                target = self.values.target(uri)
                return self._anything(depth) if target is None else self.value(target, depth)
            case canonical.AnyOfView(branches=branches) | canonical.OneOfView(branches=branches):
                return self.value(self._branch(branches, depth), depth)
            case canonical.AllOfView(branches=branches):
                return self.value(branches[0], depth)
        return self._anything(depth)

    def _branch(self, branches: list["CanonicalSchema"], depth: int) -> "CanonicalSchema":
        from hypothesis import strategies as st

        heights = [self.values.height(branch) for branch in branches]
        least = min(heights) if depth >= DEPTH_MAX else LEVELS_MAX
        flat = [b for b, height in zip(branches, heights, strict=True) if height <= least]
        return self.draw(st.sampled_from(flat or branches))

    def _anything(self, depth: int) -> Any:
        from hypothesis import strategies as st

        flat = ["null", "boolean", "integer", "number", "string"]
        kinds = flat if depth >= DEPTH_MAX else [*flat, "array", "object"]
        return self._of_type(self.draw(st.sampled_from(kinds)), depth)

    def _of_type(self, name: str, depth: int) -> Any:
        from hypothesis import strategies as st

        if name == "null":
            return None
        if name == "boolean":
            return self.draw(st.booleans())
        if name == "integer":
            return self.draw(st.integers(-SAFE, SAFE))
        if name == "number":
            return self.draw(_floats(-SAFE, SAFE))
        if name == "string":
            return self.draw(st.text(self.letters, max_size=TEXT_MAX))
        count = self.draw(st.integers(0, 2)) if depth < DEPTH_MAX else 0
        if name == "array":
            return [self._anything(depth + 1) for _ in range(count)]
        names = [self.draw(st.text(self.letters, max_size=TEXT_MAX)) for _ in range(count)]
        return {name: self._anything(depth + 1) for name in names}

    def _integer(self, view: "canonical.IntegerView") -> int:
        from hypothesis import strategies as st

        low = -SAFE if view.minimum is None else view.minimum
        high = max(low, SAFE) if view.maximum is None else view.maximum
        low = min(low, high)
        steps = [int(step) for step in view.multiple_of if step == int(step)]
        step = math.lcm(*steps) if steps else 1
        return step * self.draw(st.integers(-(-low // step), max(high // step, -(-low // step))))

    def _number(self, view: "canonical.NumberView") -> Any:
        from hypothesis import strategies as st

        low = -SAFE if view.minimum is None else float(view.minimum)
        high = max(low, SAFE) if view.maximum is None else float(view.maximum)
        low = min(low, high)
        if view.multiple_of:
            step = float(view.multiple_of[0])
            steps = st.integers(math.ceil(low / step), max(math.ceil(low / step), int(high / step)))
            return round(self.draw(steps) * step, 12)
        whole = st.integers(math.ceil(low), max(math.ceil(low), math.floor(high)))
        return self.draw(st.one_of(whole, _floats(low, high)))

    def _text(self, view: "canonical.StringView") -> str:
        from hypothesis import strategies as st

        least = view.min_length or 0
        most = view.max_length
        patterns = [python_pattern(pattern) for pattern in view.patterns]
        formats = [FORMATS[name] for name in view.formats if name in FORMATS]
        known = [pattern for pattern in patterns if pattern is not None]
        for pattern in (*known, *formats):
            for _ in range(TRIES):
                text = sized(self._matching(of_length(pattern, least, most)), known, least, most)
                if text is not None:
                    return text
        ceiling = max(least, min(TEXT_MAX if most is None else most, least + SIZE_MAX))
        sizes = [ceiling] if most is None or most > SIZE_MAX else [ceiling, most]
        return self.draw(st.text(self.letters, min_size=least, max_size=max(sizes)))

    def _matching(self, pattern: str) -> str:
        from hypothesis import errors
        from hypothesis import strategies as st

        try:
            return self.draw(st.from_regex(pattern, fullmatch=True, alphabet=self.letters))
        except errors.InvalidArgument:
            # It needs characters that the others are not made of.
            return self.draw(st.from_regex(pattern, fullmatch=True))

    def _array(self, view: "canonical.ArrayView", depth: int) -> list[Any]:
        from hypothesis import strategies as st
        from jsonschema_rs import canonical

        least = view.min_items or 0
        more = 0 if depth >= DEPTH_MAX else MORE_ITEMS
        most = max(least, min(least + more, SIZE_MAX if view.max_items is None else view.max_items))
        count = self.draw(st.integers(least, most))
        items = [self._item(view, place, depth) for place in range(count)]
        for contained in view.contains:
            needed = 1 if contained.min_contains is None else contained.min_contains
            inside = range(min(needed, SIZE_MAX))
            items += [self.value(contained.schema, depth + 1) for _ in inside]
        if view.distinctness == canonical.Distinctness.ALL_DISTINCT:
            items = list({_text_of(item): item for item in items}.values())
            for _ in range(TRIES * least):
                if len(items) >= least:
                    break
                item = self._item(view, len(items), depth)
                if _text_of(item) not in map(_text_of, items):
                    items.append(item)
        return items

    def _item(self, view: "canonical.ArrayView", place: int, depth: int) -> Any:
        if place < len(view.prefix_items):
            return self.value(view.prefix_items[place], depth + 1)
        return (
            self._anything(depth + 1) if view.items is None else self.value(view.items, depth + 1)
        )

    def _object(self, view: "canonical.ObjectView", depth: int) -> dict[str, Any]:
        names = {*view.required, *self._optional(view, depth)}
        members = [name for name in view.properties if name in names]
        members += sorted(names - set(members))
        made = {name: self._member(view, name, depth) for name in members}
        for name in self._more_names(view, len(made), depth):
            made.setdefault(name, self._member(view, name, depth))
        return made

    def _optional(self, view: "canonical.ObjectView", depth: int) -> list[str]:
        """The members that may be there and are."""
        from hypothesis import strategies as st

        open_names = [
            name
            for name, schema in view.properties.items()
            if name not in view.required
            and self.values.height(schema) < LEVELS_MAX
            and not _is_false(schema)
        ]
        if depth >= DEPTH_MAX or not open_names:
            return []
        if len(open_names) > MEMBERS_MAX:
            some = st.lists(st.sampled_from(open_names), max_size=MEMBERS_MAX, unique=True)
            return self.draw(some)
        return [name for name in open_names if self.draw(st.booleans())]

    def _more_names(self, view: "canonical.ObjectView", count: int, depth: int) -> Iterator[str]:
        """Names of members that no property describes, if an object is made to have such."""
        from hypothesis import strategies as st

        least = max(0, (view.min_properties or 0) - count)
        described = view.additional_properties is not None or bool(view.pattern_properties)
        is_map = described or not view.properties
        room = SIZE_MAX if view.max_properties is None else max(0, view.max_properties - count)
        more = MORE_MEMBERS if is_map and depth < DEPTH_MAX else 0
        closed = view.additional_properties is not None and _is_false(view.additional_properties)
        patterns = [p for p in map(python_pattern, view.pattern_properties) if p is not None]
        if closed and not patterns:
            more = 0
        for _ in range(self.draw(st.integers(least, max(least, min(more, room))))):
            if view.property_names is not None:
                yield str(self.value(view.property_names, depth))
            elif patterns:
                yield self._matching(self.draw(st.sampled_from(patterns)))
            else:
                yield self.draw(st.text(self.letters, min_size=1, max_size=TEXT_MAX))

    def _member(self, view: "canonical.ObjectView", name: str, depth: int) -> Any:
        schema = view.properties.get(name)
        if schema is None:
            fitting = (
                s for pattern, s in view.pattern_properties.items() if _matches(pattern, name)
            )
            schema = next(fitting, view.additional_properties)
        return self._anything(depth + 1) if schema is None else self.value(schema, depth + 1)


def _check_sizes(schema: Mapping[str, Any]) -> None:
    """Raises `NoSuchValue` for a schema of values that would be too large."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            for word, most in LEAST_SIZES.items():
                least = part.get(word)
                if isinstance(least, int | float) and least > most:
                    raise NoSuchValue(f"{word} is more than {most}, which is not made")
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _floats(low: float, high: float) -> "SearchStrategy[float]":
    from hypothesis import strategies as st

    return st.floats(low, high, allow_nan=False, allow_infinity=False, allow_subnormal=False)


def _is_false(schema: "CanonicalSchema") -> bool:
    from jsonschema_rs import canonical

    return schema.kind == canonical.CanonicalKind.FALSE


def _matches(pattern: str, name: str) -> bool:
    plain = python_pattern(pattern)
    return plain is not None and is_in(plain, name)


def _text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
