"""Two descriptions of a value compared: JSON Schemas, or the shorthand that agents write
(`{"email": "string", "age": "integer?", "tags": ["string"]}`).

Only what is certain is decided; the rest is `unknown`. A description says nothing about members
that it doesn't name, and nobody is taken to send them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from server.domain.content_changes import (
    ALIKE,
    NARROWER,
    UNCLEAR,
    WIDER,
    ChangeLog,
    Direction,
    Path,
    Variance,
    same,
    shown,
    text_of,
)

TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
SHORT = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
ANNOTATIONS = frozenset(
    {"title", "description", "summary", "$comment", "example", "examples", "deprecated", "tags"}
)
WORDS_ONLY = "Only words for readers changed, which are not checked."
_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_RELATED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
"""Keywords beside which it is not certain what another one does."""
_KEYWORDS = (
    ANNOTATIONS
    | _LOWER
    | _UPPER
    | _RELATED
    | frozenset(
        {
            "type", "nullable", "enum", "const", "required", "properties", "items", "format",
            "additionalProperties", "patternProperties", "pattern", "multipleOf", "uniqueItems",
            "default", "readOnly", "writeOnly", "$schema", "$id", "$defs", "definitions",
            "prefixItems", "contains", "propertyNames", "dependentRequired", "discriminator",
        }
    )
)  # fmt: skip


def compare_schemas(
    log: ChangeLog, before: Any, after: Any, path: Path, direction: Direction
) -> None:
    """Note the changes between two descriptions of one value."""
    if same(before, after) or not log.may_go_on(path):
        return
    if is_schema(before) and is_schema(after):
        _JsonSchemas(log, before, after, path, direction).compare()
    elif is_schema(before) or is_schema(after):
        log.add(path, "form_changed", shown(before), shown(after))
    elif isinstance(before, dict) and isinstance(after, dict):
        _shorthand_members(log, before, after, path, direction)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) == 1:
        compare_schemas(log, before[0], after[0], (*path, 0), direction)
    else:
        _shorthand_types(log, before, after, path, direction)


def is_schema(value: Any) -> bool:
    """Whether a value is a JSON Schema rather than shorthand, whose members may be named alike."""
    if not isinstance(value, dict) or not value.keys() <= _KEYWORDS:
        return False
    kind = value.get("type")
    named = kind in TYPES if isinstance(kind, str) else isinstance(kind, list)
    plain = isinstance(value.get("$ref"), str) or isinstance(value.get("enum"), list)
    joined = any(isinstance(value.get(name), list) for name in ("allOf", "anyOf", "oneOf"))
    return named or plain or joined or isinstance(value.get("properties"), dict)


# --- shorthand ------------------------------------------------------------------------------------


def _shorthand_members(
    log: ChangeLog, before: dict[str, Any], after: dict[str, Any], path: Path, direction: Direction
) -> None:
    for name in [*before, *(name for name in after if name not in before)]:
        at = (*path, name)
        if name not in after:
            _gone(log, at, before[name], _needed(before[name]), direction, closed=False)
        elif name not in before:
            _come(log, at, after[name], _needed(after[name]), direction, closed=False)
        else:
            compare_schemas(log, before[name], after[name], at, direction)


def _needed(value: Any, levels: int = 8) -> bool | None:
    """Whether a member of shorthand is always there; None if it is no shorthand, as an example
    isn't."""
    if isinstance(value, str):
        return None if _types_of(value) is None else not value.endswith("?")
    if isinstance(value, dict | list) and levels and not is_schema(value):
        parts = list(value.values() if isinstance(value, dict) else value)
        if isinstance(value, dict) or len(parts) == 1:
            known = any(_needed(part, levels - 1) is not None for part in parts[:100])
            return True if known else None
    return True if is_schema(value) else None


def _types_of(value: Any) -> frozenset[str] | None:
    """The JSON types that a member of shorthand allows; None if that is not certain."""
    if isinstance(value, dict):
        return frozenset({"object"})
    if isinstance(value, list):
        return frozenset({"array"}) if len(value) == 1 else None
    if not isinstance(value, str):
        return None
    names = [name.strip() for name in value[:200].removesuffix("?").split("|")]
    types = frozenset(SHORT.get(name, name) for name in names)
    return types if types <= TYPES else None


def _shorthand_types(
    log: ChangeLog, before: Any, after: Any, path: Path, direction: Direction
) -> None:
    was, now = _types_of(before), _types_of(after)
    values = shown(before), shown(after)
    if was is None or now is None:
        log.add(path, "value_changed", *values)
        return
    optional = isinstance(before, str) and before.endswith("?")
    if optional != (isinstance(after, str) and after.endswith("?")):
        rule, variance = ("became_required", NARROWER) if optional else ("became_optional", WIDER)
        log.add(path, rule, *values, variance, direction)
    if was != now:
        log.add(path, "type_changed", *values, _type_variance(was, now), direction)


# --- members --------------------------------------------------------------------------------------


def _come(
    log: ChangeLog, path: Path, after: Any, needed: bool | None, direction: Direction, closed: bool
) -> None:
    """A member that is described newly. `closed`: the old description refuses others."""
    rule = "required_member_added" if needed else "member_added"
    variance = Variance(not closed, not needed) if needed is not None else UNCLEAR
    log.add(path, rule, after=shown(after), variance=variance, direction=direction)


def _gone(
    log: ChangeLog, path: Path, before: Any, needed: bool | None, direction: Direction, closed: bool
) -> None:
    """A member that is described no longer: who relied on it is known only if it was required.
    `closed`: the new description refuses others."""
    rule = "required_member_removed" if needed else "member_removed"
    if needed is None:
        variance = UNCLEAR
    elif direction == "request":
        variance = Variance(not needed, False if closed else None)
    else:
        variance = Variance(False if needed else None, not closed)
    log.add(path, rule, before=shown(before), variance=variance, direction=direction)


def _type_variance(was: frozenset[str], now: frozenset[str]) -> Variance:
    return Variance(_within(now, was), _within(was, now))


def _within(some: frozenset[str], all_: frozenset[str]) -> bool:
    return all(kind in all_ or (kind == "integer" and "number" in all_) for kind in some)


# --- JSON Schema ----------------------------------------------------------------------------------


class _JsonSchemas:
    """Two JSON Schemas at one place."""

    def __init__(
        self,
        log: ChangeLog,
        before: dict[str, Any],
        after: dict[str, Any],
        path: Path,
        direction: Direction,
    ) -> None:
        self.log, self.before, self.after = log, before, after
        self.path, self.direction = path, direction
        self.certain = not _RELATED & (before.keys() | after.keys())

    def compare(self) -> None:
        self._types()
        self._required()
        for name in [*self.before, *(name for name in self.after if name not in self.before)]:
            if name not in ("type", "nullable", "required"):
                self._keyword(name)

    def _keyword(self, name: str) -> None:
        before, after = self.before.get(name), self.after.get(name)
        if name in self.before and name in self.after and same(before, after):
            return
        if name in ANNOTATIONS:
            self._note(name, "annotation_changed", ALIKE, WORDS_ONLY)
        else:
            _COMPARED.get(name, _JsonSchemas._unclear)(self, name)

    def _note(self, name: str, rule: str, variance: Variance, why: str | None = None) -> None:
        """Note a change of a keyword's value."""
        before = shown(self.before[name]) if name in self.before else None
        after = shown(self.after[name]) if name in self.after else None
        self._add((*self.path, name), rule, before, after, variance, why)

    def _add(
        self,
        path: Path,
        rule: str,
        before: Any,
        after: Any,
        variance: Variance,
        why: str | None = None,
    ) -> None:
        if not self.certain and variance != ALIKE:
            variance = UNCLEAR
        self.log.add(path, rule, before, after, variance, self.direction, why)

    def _unclear(self, name: str) -> None:
        if name in self.before and name in self.after:
            self.log.structure(self.before[name], self.after[name], (*self.path, name))
        else:
            rule = "value_added" if name in self.after else "value_removed"
            self._note(name, rule, UNCLEAR)

    def _types(self) -> None:
        was, now = _schema_types(self.before), _schema_types(self.after)
        if was == now:
            return
        variance = UNCLEAR if was is None or now is None else _type_variance(was, now)
        before, after = _typed(self.before), _typed(self.after)
        self._add((*self.path, "type"), "type_changed", before, after, variance)

    def _enum(self, name: str) -> None:
        was, now = self.before.get(name), self.after.get(name)
        if not isinstance(was, list | None) or not isinstance(now, list | None):
            self._unclear(name)
        elif was is None or now is None:
            rule, variance = ("enum_removed", WIDER) if now is None else ("enum_added", NARROWER)
            self._note(name, rule, variance)
        else:
            at = (*self.path, name)
            for value in _missing(was, now):
                self._add(at, "enum_value_removed", shown(value), None, NARROWER)
            for value in _missing(now, was):
                self._add(at, "enum_value_added", None, shown(value), WIDER)

    def _required(self) -> None:
        """Members that are described in both, and required in one."""
        was, now = _names(self.before), _names(self.after)
        if was is None or now is None:
            self._unclear("required")
            return
        before, after = _members(self.before), _members(self.after)
        for name in sorted(was ^ now):
            if (name in before) != (name in after):
                continue
            rule, variance = (
                ("became_required", NARROWER) if name in now else ("became_optional", WIDER)
            )
            self._add((*self.path, "properties", name), rule, None, None, variance)

    def _properties(self, name: str) -> None:
        if not all(isinstance(side.get(name, {}), dict) for side in (self.before, self.after)):
            self._unclear(name)
            return
        was, now = _members(self.before), _members(self.after)
        # Beside keywords that join schemas it is not certain that a member is not described there.
        sure = self.certain
        required = _names(self.before) or frozenset(), _names(self.after) or frozenset()
        for member in [*was, *(member for member in now if member not in was)]:
            at = (*self.path, name, member)
            if member not in now:
                needed = member in required[0] if sure else None
                _gone(self.log, at, was[member], needed, self.direction, _closed(self.after))
            elif member not in was:
                needed = member in required[1] if sure else None
                _come(self.log, at, now[member], needed, self.direction, _closed(self.before))
            else:
                compare_schemas(self.log, was[member], now[member], at, self.direction)

    def _items(self, name: str) -> None:
        was, now = self.before.get(name), self.after.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            compare_schemas(self.log, was, now, (*self.path, name), self.direction)
        else:
            self._unclear(name)

    def _additional(self, name: str) -> None:
        was, now = self.before.get(name, True), self.after.get(name, True)
        if isinstance(was, bool) and isinstance(now, bool):
            if was != now:
                self._note(name, "closed" if was else "opened", NARROWER if was else WIDER)
        else:
            self._unclear(name)

    def _bound(self, name: str) -> None:
        was, now = self.before.get(name), self.after.get(name)
        if not _is_number(was, name in self.before) or not _is_number(now, name in self.after):
            self._unclear(name)
        elif was is None or now is None:
            self._note(name, "bound_changed", WIDER if now is None else NARROWER)
        else:
            stricter = now > was if name in _LOWER else now < was
            self._note(name, "bound_changed", NARROWER if stricter else WIDER)

    def _only_here(self, name: str) -> None:
        """A keyword that restricts what is allowed, whatever its value is."""
        if name in self.before and name in self.after:
            self._note(name, "restriction_changed", UNCLEAR)
        else:
            self._note(name, "restriction_changed", NARROWER if name in self.after else WIDER)


_COMPARED: Mapping[str, Callable[[_JsonSchemas, str], None]] = {
    "enum": _JsonSchemas._enum,
    "properties": _JsonSchemas._properties,
    "items": _JsonSchemas._items,
    "additionalProperties": _JsonSchemas._additional,
    "pattern": _JsonSchemas._only_here,
    "const": _JsonSchemas._only_here,
} | dict.fromkeys(_LOWER | _UPPER, _JsonSchemas._bound)


def _schema_types(schema: dict[str, Any]) -> frozenset[str] | None:
    """The types that a schema allows; None if that is not certain."""
    kind = schema.get("type", [])
    kinds = [kind] if isinstance(kind, str) else kind
    if not isinstance(kinds, list) or not all(isinstance(name, str) for name in kinds):
        return None
    types = frozenset(kinds) or TYPES - {"integer"}
    if not types <= TYPES:
        return None
    return types | {"null"} if schema.get("nullable") is True else types


def _typed(schema: dict[str, Any]) -> Any:
    """What a schema says of its types, as a reader is shown it."""
    kind = schema.get("type")
    return {"type": kind, "nullable": True} if schema.get("nullable") is True else kind


def _members(schema: dict[str, Any]) -> dict[str, Any]:
    members = schema.get("properties")
    return members if isinstance(members, dict) else {}


def _names(schema: dict[str, Any]) -> frozenset[str] | None:
    """The members that a schema requires; None if it doesn't say so properly."""
    names = schema.get("required", [])
    proper = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return frozenset(names) if proper else None


def _closed(schema: dict[str, Any]) -> bool:
    return schema.get("additionalProperties") is False


def _missing(values: list[Any], others: list[Any]) -> list[Any]:
    known = {text_of(value) for value in others}
    return [value for value in values if text_of(value) not in known]


def _is_number(value: Any, is_there: bool) -> bool:
    return not is_there or (isinstance(value, int | float) and not isinstance(value, bool))
