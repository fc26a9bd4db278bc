"""The schemas of an interface by good names and in few words, for generators of types.

A generator reads much from a schema: names from titles, code from extensions, files from `$ref`s.
So it is given only what shapes a type, made anew here: keywords of a fixed list, names that are
identifiers, references among these schemas, and words for readers without quotes.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from contracts.json_text import text_of
from contracts.model import Interface, Located, Operation, Part, Path
from contracts.standalone import SchemaBundle
from contracts.subschemas import subschemas
from schemas.dialect import Direction
from schemas.plain import one_line

REFERENCE = "#/components/schemas/"
NAME_MAX = 60
DESCRIPTION_MAX = 300
VALUES_MAX = 500
"""Values of an `enum` that a type lists; with more it is what they are values of."""
SCHEMAS_MAX = 2_000
"""Schemas of one contract that types are made of."""

_RESERVED = frozenset(
    {
        "any", "array", "bool", "dict", "false", "float", "int", "list", "literal", "never", "none",
        "notrequired", "null", "number", "object", "optional", "record", "required", "str",
        "string", "true", "tuple", "typealias", "typeddict", "union", "unknown",
    }
)  # fmt: skip
"""Names, in lower case, that generated code gives a meaning of its own."""
_COMBINERS = ("allOf", "anyOf", "oneOf")
_APPLIED = frozenset({"$ref", *_COMBINERS})
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_WORDS = re.compile(r"[A-Za-z0-9]+")
_UNQUOTED = str.maketrans({'"': "'", "\\": "/", "*": "·", "`": "'"})


class TooManySchemas(ValueError):
    """A contract has more schemas than types are made of."""


class TypedSchema(NamedTuple):
    """A schema to make a type of, and the name that it should have. In `schema`, references are to
    `definition`s by their name; `is_sent` tells that it is what a request holds."""

    name: str
    schema: Any
    is_sent: bool
    definition: str | None = None


def typed_schemas(interface: Interface, title: str) -> dict[str, Any]:
    """The schema of each body of each operation, and all that they refer to, by the name of its
    type: `{"GetProfileResponse200": {"$ref": "#/components/schemas/User"}, "User": …}`.

    `title` names what has no name of its own: a model, or the endpoint that is the whole content.
    Empty if nothing in it has a schema. Names are identifiers of ASCII that differ in more than
    case. Raises TooManySchemas. The work is linear in the document.
    """
    listed = _gathered(interface, title)
    if len(listed) > SCHEMAS_MAX:
        raise TooManySchemas(f"it has more than {SCHEMAS_MAX:,} schemas")
    names = _distinct([typed.name for typed in listed])
    usual: dict[str, str] = {}
    sent: dict[str, str] = {}
    for name, typed in zip(names, listed, strict=True):
        if typed.definition is not None:
            (sent if typed.is_sent else usual)[typed.definition] = name
    targets = {False: usual, True: usual | sent}
    return _unwound(
        {
            name: _plain(typed.schema, targets[typed.is_sent].__getitem__)
            for name, typed in zip(names, listed, strict=True)
        }
    )


def type_name(text: str) -> str:
    """A text as the name of a type.

    >>> type_name("GET /users/{user_id}/größe")
    'GetUsersByUserIdGrosse'
    """
    by = _PLACEHOLDER.sub(r" by \1 ", text[: 4 * NAME_MAX].replace("ß", "ss"))
    plain = unicodedata.normalize("NFKD", by).encode("ascii", "ignore").decode()
    words = _WORDS.findall(plain)
    name = "".join(w[0].upper() + (w[1:].lower() if w.isupper() else w[1:]) for w in words)
    name = name[:NAME_MAX] or "Type"
    return f"Type{name}" if name[0].isdigit() or name.lower() in _RESERVED else name


# --- which schemas, and their names ---------------------------------------------------------------


def _roots(interface: Interface, title: str) -> Iterator[tuple[str, Located, Direction | None]]:
    """Each body with the name of its type, and the direction in which it is sent."""
    messages: set[tuple[str, str, Path]] = set()
    for operation in interface.operations:
        base = _base(interface, operation, title)
        for part, suffix, direction in _parts(operation):
            for number, (media, located) in enumerate(part.bodies.items()):
                if operation.kind == "http":
                    kind = type_name(media.rpartition("/")[2]) if number else ""
                    yield f"{base}{suffix}{kind}", located, direction
                # A message that is sent and received has one type.
                elif (key := (base, located.file, located.path)) not in messages:
                    messages.add(key)
                    yield base, located, None


def _parts(operation: Operation) -> Iterator[tuple[Part, str, Direction]]:
    yield operation.request, "Request", "request"
    for status, part in operation.responses.items():
        number = status if status[:1].isdigit() and status.isalnum() else type_name(status)
        yield part, f"Response{'' if status == '2XX' else number}", "response"


def _base(interface: Interface, operation: Operation, title: str) -> str:
    if operation.kind == "model" or not operation.path:
        return type_name(title)
    if operation.kind == "event":
        return type_name(operation.key.rpartition(" ")[2])
    given: Any = interface.document
    for step in operation.path:
        given = given.get(step) if isinstance(given, Mapping) else None
    name = given.get("operationId") if isinstance(given, Mapping) else None
    route = f"{operation.method} {operation.route}" if operation.route else operation.key
    return type_name(name if isinstance(name, str) and _WORDS.search(name) else route)


def _distinct(wanted: list[str]) -> list[str]:
    """Names that differ in more than case; of equal ones the first stays as it is."""
    names: list[str] = []
    used: set[str] = set()
    following: dict[str, int] = {}
    for given in wanted:
        name, number = given, following.get(given.lower(), 1)
        while name.lower() in used:
            number += 1
            name = f"{given}{number}"
        following[given.lower()] = number
        used.add(name.lower())
        names.append(name)
    return names


def _gathered(interface: Interface, title: str) -> list[TypedSchema]:
    """The schemas of all bodies, then the definitions that they refer to. A definition that is
    another one in requests is there twice."""
    places: dict[tuple[str, Path], str] = {}
    directions: tuple[Direction | None, ...] = (None, "response", "request")
    bundles = {direction: SchemaBundle(interface, direction, places) for direction in directions}
    listed = [
        TypedSchema(name, bundles[direction].of(located), direction == "request")
        for name, located, direction in _roots(interface, title)
    ]
    # An interface has either bodies with a direction or messages without.
    usual = bundles[None].definitions() | bundles["response"].definitions()
    sent = bundles["request"].definitions()
    apart = _apart(usual, sent)
    shared = usual | {name: schema for name, schema in sent.items() if name not in usual}
    listed += [
        TypedSchema(type_name(name), schema, name not in usual, name)
        for name, schema in shared.items()
    ]
    inputs = [name for name in sent if name in apart]
    listed += [TypedSchema(f"{type_name(name)}Input", sent[name], True, name) for name in inputs]
    return listed


def _apart(usual: Mapping[str, Any], sent: Mapping[str, Any]) -> set[str]:
    """The names of definitions that are others in requests: by themselves, or by what they refer
    to."""
    apart = {name for name in sent if name in usual and text_of(sent[name]) != text_of(usual[name])}
    users: dict[str, list[str]] = {}
    for name in sent.keys() & usual.keys():
        for target in _targets(sent[name]):
            users.setdefault(target, []).append(name)
    waiting = [*apart]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in apart:
                apart.add(user)
                waiting.append(user)
    return apart


def _targets(schema: Any) -> Iterator[str]:
    """The names of the definitions that a schema of a bundle refers to."""
    if isinstance(schema, Mapping):
        if isinstance(ref := schema.get("$ref"), str):
            yield ref.removeprefix("#/$defs/")
        for _, part in subschemas(schema):
            yield from _targets(part)


# --- what is left of a schema ---------------------------------------------------------------------


def _plain(schema: Any, name_of: Callable[[str], str]) -> dict[str, Any]:
    """What of a schema shapes a type."""
    if not isinstance(schema, Mapping):
        return {"not": {}} if schema is False else {}
    plain = _typed(schema)
    # What is listed needs no more words.
    if "enum" not in plain:
        plain |= _object(schema, name_of) | _array(schema, name_of)
        for word in _COMBINERS:
            if isinstance(parts := schema.get(word), list) and parts:
                plain[word] = [_plain(part, name_of) for part in parts]
        if isinstance(ref := schema.get("$ref"), str):
            reference = {"$ref": REFERENCE + name_of(ref.removeprefix("#/$defs/"))}
            if not plain:
                return reference
            plain["allOf"] = [reference, *plain.get("allOf", ())]
    words = schema.get("description")
    if isinstance(words, str) and (words := one_line(words, DESCRIPTION_MAX)):
        plain["description"] = words.translate(_UNQUOTED)
    return plain


def _typed(schema: Mapping[str, Any]) -> dict[str, Any]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= VALUES_MAX and all(map(_is_literal, values)):
        return {"enum": list({(type(value), value): value for value in values}.values())}
    given = schema.get("type")
    kinds = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    kinds = list(dict.fromkeys(kind for kind in kinds if kind in _TYPES))
    return {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}


def _is_literal(value: Any) -> bool:
    """Whether a value can stand in a type of any language: no fraction, list or object, and no text
    with characters that can't be seen."""
    if isinstance(value, str):
        return value.isprintable()
    return value is None or isinstance(value, bool | int)


def _object(schema: Mapping[str, Any], name_of: Callable[[str], str]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    members = schema.get("properties")
    named = {
        name: _plain(part, name_of)
        for name, part in (members.items() if isinstance(members, Mapping) else ())
        if _is_literal(name)
    }
    if named:
        plain |= {"type": "object", "properties": named} if "type" not in schema else {}
        plain["properties"] = named
        required = schema.get("required")
        if isinstance(required, list) and (
            listed := [n for n in dict.fromkeys(required) if n in named]
        ):
            plain["required"] = listed
    others = schema.get("additionalProperties")
    patterns = schema.get("patternProperties")
    if isinstance(others, Mapping):
        plain["additionalProperties"] = _plain(others, name_of)
    elif not named and isinstance(patterns, Mapping) and patterns:
        parts = [_plain(part, name_of) for part in patterns.values()]
        plain["additionalProperties"] = parts[0] if len(parts) == 1 else {"anyOf": parts}
    elif not named and isinstance(others, bool):
        plain["additionalProperties"] = others
    elif not named and schema.get("type") == "object" and not schema.keys() & _APPLIED:
        # Generators take it for an object without members.
        plain["additionalProperties"] = True
    return plain


def _array(schema: Mapping[str, Any], name_of: Callable[[str], str]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if isinstance(items := schema.get("items"), Mapping):
        plain["items"] = _plain(items, name_of)
    if isinstance(first := schema.get("prefixItems"), list) and first:
        plain["prefixItems"] = [_plain(part, name_of) for part in first]
    return plain


def _unwound(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas without the references by which one consists of itself and nothing else, such as
    `{"anyOf": [{"$ref": itself}, …]}`: that is no type, and allows nothing more."""
    done: set[str] = set()
    for start in schemas:
        opened = {start: _direct(schemas[start])}
        while start not in done:
            name = next(reversed(opened))
            holder = next(opened[name], None)
            if holder is None:
                done.add(name)
                del opened[name]
                continue
            target = holder["$ref"].removeprefix(REFERENCE)
            if target in opened:
                del holder["$ref"]
            elif target not in done:
                opened[target] = _direct(schemas[target])
    return schemas


def _direct(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The references that a schema consists of, not those of its members or elements."""
    if "$ref" in schema:
        yield schema
    for word in _COMBINERS:
        for part in schema.get(word, ()):
            yield from _direct(part)
