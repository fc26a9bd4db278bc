"""What a change of a GraphQL schema breaks.

graphql-core finds the changes, in both directions: from the old schema to the new one for consumers
that stay at the old, from the new to the old for providers that do. What it calls breaking is, but
for the two points marked *; where it says dangerous, and where it finds nothing, this counts:

- A value added to an enum breaks those who are sent it: consumers, if a field has the enum.
- A type added to a union breaks consumers, who select nothing of it. One more type that implements
  an interface doesn't: it has what they select of the interface.
- An argument or input field that may be left out, added, breaks no consumer. Without its default
  value one of a non-null type must be given: that breaks. Another default value is `unknown`.
- * A directive that no query can hold breaks nobody. A standard scalar is part of every schema.
- Another root type, `@oneOf` on an input type, another `@specifiedBy` of a scalar are changes too.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from contracts.changes import WORDS_ONLY, ContractChange
from contracts.graphql_sdl import read_sdl
from contracts.json_text import short_text
from contracts.model import Interface
from schemas.dialect import Direction, Effect
from schemas.plain import one_line

if TYPE_CHECKING:
    from graphql import GraphQLSchema

_WHY_MAX = 300
_NAME = r"[_A-Za-z][_0-9A-Za-z]*"
_TYPE = rf"(?P<place>{_NAME})"
_DIRECTIVE = rf"(?P<place>@{_NAME})"
_MEMBER = rf"(?P<member>{_NAME})"
_PATTERNS = (
    ("UNION", rf"^{_MEMBER} was (?:added to|removed from) union type {_TYPE}\."),
    ("INTERFACE_ADDED", rf"^{_MEMBER} added to interfaces implemented by {_TYPE}\."),
    ("INTERFACE_REMOVED", rf"^{_TYPE} no longer implements interface {_MEMBER}\."),
    ("LOCATION", rf"^{_MEMBER} was (?:added to|removed from) {_DIRECTIVE}\."),
    ("TYPE_", rf"^(?:Standard scalar )?{_TYPE} (?:was|changed) "),
    (
        "DESCRIPTION",
        r"^Description of (?:field |argument |input-field |enum value )??"
        rf"(?P<place>@?{_NAME}(?:\.{_NAME})?(?:\({_NAME}\))?) has changed ",
    ),
    ("", rf"(?P<place>(?:@{_NAME}|{_NAME}\.{_NAME})(?:\({_NAME}:\))?)"),
)
"""Where graphql-core's descriptions name the place of a change, by a part of its kind: it tells it
in no other form."""

_IN_QUERIES = frozenset(
    {
        "QUERY",
        "MUTATION",
        "SUBSCRIPTION",
        "FIELD",
        "FRAGMENT_DEFINITION",
        "FRAGMENT_SPREAD",
        "INLINE_FRAGMENT",
        "VARIABLE_DEFINITION",
        "FRAGMENT_VARIABLE_DEFINITION",
    }
)
"""Locations of directives that are not of the definition language."""


_OLD = "A provider at the old schema"
_NOT_THERE = f"{_OLD} doesn't have it."
_OF_PROVIDERS = {
    "TYPE_ADDED_TO_UNION": f"{_OLD} may send it.",
    "VALUE_ADDED_TO_ENUM": f"{_OLD} may send it.",
    "FIELD_CHANGED_KIND": f"{_OLD} doesn't hold to it.",
    "ARG_CHANGED_KIND": f"{_OLD} doesn't hold to it.",
    "ARG_DEFAULT_VALUE_CHANGE": f"{_OLD} has no default value.",
    "INPUT_FIELD_DEFAULT_VALUE_CHANGE": f"{_OLD} has no default value.",
    "REQUIRED_ARG_ADDED": f"{_OLD} asks for it.",
    "REQUIRED_INPUT_FIELD_ADDED": f"{_OLD} asks for it.",
    "REQUIRED_DIRECTIVE_ARG_ADDED": f"{_OLD} asks for it.",
    "TYPE_CHANGED_KIND": "",
} | dict.fromkeys(
    (
        "TYPE_REMOVED",
        "TYPE_REMOVED_FROM_UNION",
        "VALUE_REMOVED_FROM_ENUM",
        "IMPLEMENTED_INTERFACE_REMOVED",
        "FIELD_REMOVED",
        "ARG_REMOVED",
        "DIRECTIVE_REMOVED",
        "DIRECTIVE_ARG_REMOVED",
        "DIRECTIVE_REPEATABLE_REMOVED",
        "DIRECTIVE_LOCATION_REMOVED",
    ),
    _NOT_THERE,
)
"""Why a change breaks providers, by its kind in their direction: from the new schema to the old."""


class _Found(NamedTuple):
    """A change that graphql-core found in one direction."""

    kind: str
    place: str
    member: str
    description: str
    effect: Effect
    reason: str


class _Direction:
    """The schema of one side that stays at it, and the one that the other side goes to."""

    def __init__(self, kept: "GraphQLSchema", other: "GraphQLSchema") -> None:
        self.kept, self.other = kept, other

    @cached_property
    def answered(self) -> frozenset[str]:
        """The types that fields have."""
        from graphql import GraphQLInterfaceType, GraphQLObjectType, get_named_type

        return frozenset(
            get_named_type(field.type).name
            for type in self.kept.type_map.values()
            if isinstance(type, GraphQLObjectType | GraphQLInterfaceType)
            for field in type.fields.values()
        )

    def changes(self) -> dict[tuple[str, ...], _Found]:
        """The changes by place and aspect, under which the other direction has the same change."""
        from graphql import specified_scalar_types
        from graphql.utilities.find_schema_changes import find_schema_changes

        changes: dict[tuple[str, ...], _Found] = {}
        for change in find_schema_changes(self.kept, self.other):
            kind = change.type.name
            place, member = _place(kind, change.description)
            if place in specified_scalar_types:
                continue  # It is part of every schema.
            effect, reason = self._effect(kind, place, member)
            description = one_line(change.description, _WHY_MAX)
            key = (place or description, member, _aspect(kind))
            changes[key] = _Found(kind, place, member, description, effect, reason)
        return changes

    def _effect(self, kind: str, place: str, member: str) -> tuple[Effect, str]:
        """What a change means for the side that stays, and why, where that isn't plain."""
        from graphql.utilities import BreakingChangeType

        if place.startswith("@") and not self._is_in_queries(kind, place, member):
            return "compatible", "No query can hold it."
        if kind in BreakingChangeType.__members__:
            return "breaking", ""
        if kind == "TYPE_ADDED_TO_UNION":
            return "breaking", "Consumers that don't know it select nothing of it."
        if kind == "VALUE_ADDED_TO_ENUM" and place.split(".")[0] in self.answered:
            return "breaking", "Consumers may be sent a value that they don't know."
        if kind.endswith("DEFAULT_VALUE_CHANGE"):
            if _is_required(_element(self.other, place)):
                return "breaking", "It must be given where it could be left out."
            return "unknown", "What is left out is taken for another value."
        return "compatible", ""

    def _is_in_queries(self, kind: str, place: str, member: str) -> bool:
        """Whether a query can hold a directive, or hold it at the location that is changed."""
        if "LOCATION" in kind:
            return member in _IN_QUERIES
        name = place[1:].split("(")[0]
        directive = self.kept.get_directive(name) or self.other.get_directive(name)
        return directive is not None and any(
            location.name in _IN_QUERIES for location in directive.locations
        )


def graphql_changes(before: Interface, after: Interface) -> list[ContractChange]:
    """The changes from one GraphQL schema to another; none if one can't be read, which is among the
    interface's `unread` then."""
    old, new = read_sdl(before.document), read_sdl(after.document)
    if old.text == new.text or old.schema is None or new.schema is None:
        return []
    forward = _Direction(old.schema, new.schema).changes()
    backward = _Direction(new.schema, old.schema).changes()
    changes = [
        _change(forward.get(key), backward.get(key), old.schema, new.schema)
        for key in dict.fromkeys((*forward, *backward))
    ]
    return [*changes, *_roots(old.schema, new.schema), *_marks(old.schema, new.schema)]


def _place(kind: str, description: str) -> tuple[str, str]:
    """The schema coordinate of a change, and the member there that the change is about."""
    pattern = next(pattern for part, pattern in _PATTERNS if part in kind)
    match = re.search(pattern, description)
    if match is None:
        return "", ""
    place = match["place"]
    if kind == "DESCRIPTION_CHANGED":
        # It writes an argument without the colon, and for one of a directive the directive's name.
        place = place.split("(")[0] if place.startswith("@") else place.replace(")", ":)")
    return place, match.groupdict().get("member") or ""


def _aspect(kind: str) -> str:
    """What of a place a change is about, if another of the same place can stand beside it."""
    if kind == "DESCRIPTION_CHANGED":
        return "description"
    return "repeatable" if "REPEATABLE" in kind else ""


def _change(
    forward: _Found | None, backward: _Found | None, old: "GraphQLSchema", new: "GraphQLSchema"
) -> ContractChange:
    """One change, from what it is in each direction."""
    known = forward or backward
    assert known is not None
    consumer: Effect = forward.effect if forward else "compatible"
    provider: Effect = backward.effect if backward else "compatible"
    if known.kind == "DESCRIPTION_CHANGED":
        return ContractChange(
            known.place, "description_changed", None, provider, consumer, None, None, WORDS_ONLY
        )
    before, after = _values(known, old, new) if forward else _values(known, new, old)[::-1]
    return ContractChange(
        known.place,
        known.kind.lower(),
        _side(known.place, old, new),
        provider,
        consumer,
        short_text(before),
        short_text(after),
        _why(forward, backward, known.place),
    )


def _why(forward: _Found | None, backward: _Found | None, place: str) -> str:
    # It lists no change of a type in the direction in which that is safe if there is a default.
    parts = [forward.description, forward.reason] if forward else [f"{place} changed."]
    if backward and backward.effect == "unknown" and not (forward and forward.reason):
        parts.append(backward.reason)
    elif backward and backward.effect == "breaking":
        parts.append(_OF_PROVIDERS.get(backward.kind, ""))
    return " ".join(part for part in parts if part)


def _values(
    known: _Found, old: "GraphQLSchema", new: "GraphQLSchema"
) -> tuple[str | None, str | None]:
    """What stood at the place of a change, and what stands there."""
    if known.member:
        is_added = "ADDED" in known.kind
        return (None, known.member) if is_added else (known.member, None)
    before, after = _element(old, known.place), _element(new, known.place)
    return _written(before, known.place), _written(after, known.place)


def _element(schema: "GraphQLSchema", place: str) -> Any:
    """What stands at a schema coordinate; None for nothing."""
    from graphql import GraphQLError
    from graphql.utilities import resolve_schema_coordinate

    try:
        resolved = resolve_schema_coordinate(schema, place)
    except (TypeError, GraphQLError):
        return None
    # The last one is its kind, the one before it the element itself.
    return resolved[-2] if resolved else None


def _written(element: Any, place: str) -> str | None:
    """How a schema writes an element: a type's kind, a field's type, what a directive is on."""
    from graphql import (
        GraphQLArgument,
        GraphQLDirective,
        GraphQLEnumValue,
        GraphQLInputField,
        GraphQLNamedType,
        print_ast,
    )
    from graphql.utilities import get_default_value_ast

    if element is None:
        return None
    if isinstance(element, GraphQLNamedType):
        return type(element).__name__.removeprefix("GraphQL").removesuffix("Type").lower()
    if isinstance(element, GraphQLEnumValue):
        return place.split(".")[1]
    if isinstance(element, GraphQLDirective):
        places = " | ".join(location.name for location in element.locations)
        return f"{'repeatable ' if element.is_repeatable else ''}on {places}"
    default = None
    if isinstance(element, GraphQLArgument | GraphQLInputField):
        default = get_default_value_ast(element)
    return f"{element.type} = {print_ast(default)}" if default else str(element.type)


def _is_required(element: Any) -> bool:
    from graphql import GraphQLArgument, GraphQLInputField
    from graphql import is_required_argument as required_argument
    from graphql import is_required_input_field as required_field

    if isinstance(element, GraphQLArgument):
        return required_argument(element)
    return isinstance(element, GraphQLInputField) and required_field(element)


def _side(place: str, old: "GraphQLSchema", new: "GraphQLSchema") -> Direction | None:
    """Who sends what is at a place: consumers send arguments and input, providers fields."""
    from graphql import GraphQLInputObjectType, GraphQLInterfaceType, GraphQLObjectType

    if "(" in place or place.startswith("@"):
        return "request"
    type = old.get_type(place.split(".")[0]) or new.get_type(place.split(".")[0])
    if isinstance(type, GraphQLInputObjectType):
        return "request"
    is_field = "." in place and isinstance(type, GraphQLObjectType | GraphQLInterfaceType)
    return "response" if is_field else None


def _roots(old: "GraphQLSchema", new: "GraphQLSchema") -> Iterator[ContractChange]:
    """Other types of queries, mutations and subscriptions. Types that come or go are changes of
    their own."""
    for operation in ("query", "mutation", "subscription"):
        before, after = getattr(old, f"{operation}_type"), getattr(new, f"{operation}_type")
        if (before and before.name) == (after and after.name):
            continue
        gone = before is not None
        if before is None and after.name not in old.type_map:
            continue
        if after is None and before.name not in new.type_map:
            continue
        yield ContractChange(
            f"schema.{operation}",
            "root_type_changed",
            None,
            "breaking" if after is not None else "compatible",
            "breaking" if gone else "compatible",
            short_text(before and before.name),
            short_text(after and after.name),
            f"Another type has what a {operation} asks for.",
        )


def _marks(old: "GraphQLSchema", new: "GraphQLSchema") -> Iterator[ContractChange]:
    """Directives of the language that change what a type takes."""
    from graphql import GraphQLInputObjectType, GraphQLScalarType

    for name, before in old.type_map.items():
        after = new.type_map.get(name)
        if isinstance(before, GraphQLInputObjectType) and isinstance(after, type(before)):
            if before.is_one_of != after.is_one_of:
                yield ContractChange(
                    name,
                    "one_of_changed",
                    "request",
                    "breaking" if before.is_one_of else "compatible",
                    "breaking" if after.is_one_of else "compatible",
                    short_text(before.is_one_of),
                    short_text(after.is_one_of),
                    f"Of {name}, exactly one field is given with @oneOf, any number without it.",
                )
        elif isinstance(before, GraphQLScalarType) and isinstance(after, type(before)):
            was, now = before.specified_by_url, after.specified_by_url
            if was and now and was != now:
                yield ContractChange(
                    name,
                    "specified_by_changed",
                    None,
                    "unknown",
                    "unknown",
                    short_text(was),
                    short_text(now),
                    f"Another text specifies the values of {name}.",
                )
