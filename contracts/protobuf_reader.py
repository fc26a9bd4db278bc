"""Reads `.proto` files into `contracts.protobuf`: gives each type its full name, and holds them to
the rules of the language.

proto-schema-parser is imported here and not before: import this module inside a function.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from proto_schema_parser import ast

from contracts.model import DocumentProblem, Path
from contracts.protobuf_model import (
    Kind,
    Label,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    ProtoMethod,
    ProtoSchema,
    Ranges,
    end_of,
)
from contracts.protobuf_text import InvalidText, UnreadText, parse
from schemas.plain import one_line

NUMBER_MAX = 2**29 - 1
ENUM_MAX = 2**31 - 1
KEPT_NUMBERS = range(19_000, 20_000)
"""Field numbers that the implementation keeps for itself."""
NOTES_MAX = 100
SHOWN_MAX = 100

SCALARS = frozenset({
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
    "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
})  # fmt: skip
_FLOATS = frozenset({"double", "float"})


_PROTO2, _PROTO3 = "proto2", "proto3"
_FIELD_PRESENCE = "features.field_presence"
_PRESENCE: Mapping[str, Label] = {
    "EXPLICIT": "optional",
    "IMPLICIT": "implicit",
    "LEGACY_REQUIRED": "required",
}
_LABELS: Mapping[ast.FieldCardinality | None, Label] = {
    ast.FieldCardinality.REQUIRED: "required",
    ast.FieldCardinality.OPTIONAL: "optional",
    ast.FieldCardinality.REPEATED: "repeated",
}
_ZERO = {"string": "", "bytes": "", "bool": "false"}


class _Scope(NamedTuple):
    """Where declarations stand: the full name of what encloses them, and what their file says."""

    name: str
    path: Path
    syntax: str
    presence: Label
    has_foreign: bool
    """Whether the file imports files that are not there."""

    def full(self, name: str) -> str:
        return f"{self.name}.{name}" if self.name else name

    def within(self, name: str) -> "_Scope":
        return self._replace(name=self.full(name))


def read_files(
    texts: Mapping[str, str], paths: Mapping[str, Path]
) -> tuple[ProtoSchema | None, tuple[DocumentProblem, ...], tuple[DocumentProblem, ...]]:
    """What the files define, their problems, and warnings; None for a schema of which a file is not
    read."""
    reader = _Reader()
    files = []
    for name, text in texts.items():
        try:
            files.append((parse(text), paths[name]))
        except InvalidText as error:
            reader.problems.append(DocumentProblem(paths[name], str(error)))
        except UnreadText as error:
            why = f"The file is not read, and its changes are not judged: {error}"
            reader.warnings.append(DocumentProblem(paths[name], why))
    if len(files) < len(texts):
        return None, _cut(reader.problems), _cut(reader.warnings)
    scopes = [(file, reader.scope(file, path, set(texts))) for file, path in files]
    for file, scope in scopes:
        reader.declare(file.file_elements, scope)
    for file, scope in scopes:
        reader.define(file.file_elements, scope)
    reader.check_maps()
    return reader.schema(), _cut(reader.problems), _cut(reader.warnings)


def _cut(notes: list[DocumentProblem]) -> tuple[DocumentProblem, ...]:
    return tuple(dict.fromkeys(notes))[:NOTES_MAX]


class _Reader:
    """The files of one content while they are read."""

    def __init__(self) -> None:
        self.problems: list[DocumentProblem] = []
        self.warnings: list[DocumentProblem] = []
        self._packages: set[str] = set()
        self._kinds: dict[str, Kind] = {}
        """What each full name is, of messages, groups and enums."""
        self._names: set[str] = set()
        self._messages: dict[str, ProtoMessage] = {}
        self._enums: dict[str, ProtoEnum] = {}
        self._services: dict[str, frozenset[str]] = {}
        self._methods: dict[str, ProtoMethod] = {}
        self._features: dict[str, str] = {}
        self._maps: list[tuple[_Scope, ProtoField]] = []

    def schema(self) -> ProtoSchema:
        return ProtoSchema(
            frozenset(self._packages),
            self._messages,
            self._enums,
            self._services,
            self._methods,
            self._features,
        )

    def _wrong(self, scope: _Scope, name: str, why: str) -> None:
        self.problems.append(DocumentProblem(scope.path, f"{one_line(name, SHOWN_MAX)}: {why}"))

    # Files

    def scope(self, file: ast.File, path: Path, given: set[str]) -> _Scope:
        """What a file says of all that is in it. `given` are the names of the files there are."""
        syntax = file.syntax or (_PROTO2 if file.edition is None else file.edition)
        package, has_foreign = "", False
        presence: Label = "implicit" if syntax == _PROTO3 else "optional"
        for element in file.file_elements:
            if isinstance(element, ast.Package):
                package = element.name
            elif isinstance(element, ast.Import) and element.name not in given:
                has_foreign = True
                if not element.name.startswith("google/protobuf/"):
                    why = f'"{one_line(element.name, SHOWN_MAX)}" is not given along: '
                    why += "its types are compared by their names only."
                    self.warnings.append(DocumentProblem(path, why))
            elif isinstance(element, ast.Option) and element.name == _FIELD_PRESENCE:
                presence = _PRESENCE.get(_written(element.value), presence)
        self._packages.add(package)
        scope = _Scope(package, path, syntax, presence, has_foreign)
        if file.syntax and syntax not in (_PROTO2, _PROTO3):
            self._wrong(scope, "syntax", 'it is "proto2" or "proto3".')
        return scope

    def declare(self, elements: list[Any], scope: _Scope) -> None:
        """Note the full name of each type."""
        for element in elements:
            match element:
                case ast.Message() | ast.Group():
                    is_group = isinstance(element, ast.Group)
                    self._declare(element.name, scope, "group" if is_group else "message")
                    self.declare(element.elements, scope.within(element.name))
                case ast.Enum():
                    self._declare(element.name, scope, "enum")
                case ast.Service():
                    self._declare(element.name, scope, None)
                case ast.OneOf() | ast.Extension():
                    self.declare(element.elements, scope)

    def _declare(self, name: str, scope: _Scope, kind: Kind | None) -> None:
        full = scope.full(name)
        if full in self._names:
            self._wrong(scope, full, "it is defined twice.")
        self._names.add(full)
        if kind is not None:
            self._kinds[full] = kind

    def define(self, elements: list[Any], scope: _Scope) -> None:
        """Read what stands in a file or a message, but for the message's own fields."""
        for element in elements:
            match element:
                case ast.Message() | ast.Group():
                    self._define_message(element, scope)
                case ast.Enum():
                    self._define_enum(element, scope)
                case ast.Service():
                    self._define_service(element, scope)
                case ast.Extension():
                    self._define_extension(element, scope)
                case ast.OneOf():
                    self.define([e for e in element.elements if isinstance(e, ast.Group)], scope)
                case ast.Option():
                    self._note_feature(element, scope.name)

    def _note_feature(self, option: ast.Option, place: str) -> None:
        """Keep an option of editions, whose meaning is not worked out."""
        if option.name.split(".")[0] == "features" and option.name != _FIELD_PRESENCE:
            self._features[f"{place} {option.name}"] = _written(option.value)

    # Messages

    def _define_message(self, message: ast.Message | ast.Group, scope: _Scope) -> None:
        inner = scope.within(message.name)
        self.define(message.elements, inner)
        reserved = [e for e in message.elements if isinstance(e, ast.Reserved)]
        ranges, names = self._reserved(reserved, NUMBER_MAX, inner)
        fields = list(self._fields(message.elements, inner))
        self._check_fields(fields, inner, ranges, names)
        by_number = {field.number: field for field in fields}
        self._messages[inner.name] = ProtoMessage(inner.name, by_number, ranges, names)

    def _reserved(
        self, elements: Sequence[ast.Reserved | ast.EnumReserved], most: int, scope: _Scope
    ) -> tuple[Ranges, frozenset[str]]:
        """The numbers and names that a message or enum reserves."""
        pairs = _ranges([text for element in elements for text in element.ranges], most)
        names = [name for element in elements for name in element.names]
        if any(low <= before[1] for before, (low, _) in pairwise(pairs)):
            self._wrong(scope, scope.name, "a number is reserved twice.")
        if any(low > high for low, high in pairs):
            self._wrong(scope, scope.name, "a reserved range ends before it begins.")
        if len(set(names)) < len(names):
            self._wrong(scope, scope.name, "a name is reserved twice.")
        return _joined(pairs), frozenset(names)

    def _fields(self, elements: list[Any], scope: _Scope, oneof: str = "") -> Iterator[ProtoField]:
        for element in elements:
            match element:
                case ast.OneOf():
                    yield from self._fields(element.elements, scope, element.name)
                case ast.Field():
                    yield self._field(element, scope, oneof)
                case ast.MapField():
                    yield self._map(element, scope)
                case ast.Group():
                    # A group's field has its name in lower case.
                    name, label = element.name.lower(), _LABELS.get(element.cardinality, "optional")
                    yield ProtoField(
                        element.number, name, "group", scope.full(element.name), label,
                        _json_name(name), oneof=oneof,
                    )  # fmt: skip

    def _field(self, element: ast.Field, scope: _Scope, oneof: str) -> ProtoField:
        options = {option.name: _written(option.value) for option in element.options}
        for option in element.options:
            self._note_feature(option, scope.full(element.name))
        kind, type = self._type(element.type, scope, element.name)
        label = self._label(element, scope, kind, oneof)
        label = _PRESENCE.get(options.get(_FIELD_PRESENCE, ""), label)
        default = options.get("default", "")
        given = next((o.value for o in element.options if o.name == "default"), None)
        if given is not None and scope.syntax == _PROTO3:
            self._wrong(scope, scope.full(element.name), "proto3 has no default values.")
        elif given is not None and not _fits_type(given, kind, type):
            why = f"{one_line(default, SHOWN_MAX)} is no value of {type}."
            self._wrong(scope, scope.full(element.name), why)
        json_name = options.get("json_name") or _json_name(element.name)
        zero = _ZERO.get(type, "" if kind == "enum" else "0")
        return ProtoField(
            element.number, element.name, kind, type, label, json_name, oneof=oneof,
            default="" if default == zero else default,
        )  # fmt: skip

    def _label(self, element: ast.Field, scope: _Scope, kind: Kind, oneof: str) -> Label:
        label = _LABELS.get(element.cardinality)
        full = scope.full(element.name)
        if scope.syntax == _PROTO2 and label is None and not oneof:
            self._wrong(scope, full, "in proto2 a field is optional, required or repeated.")
        if scope.syntax != _PROTO2 and label == "required":
            self._wrong(scope, full, "only proto2 has required fields.")
        if label is not None:
            return label
        return "optional" if oneof or kind in ("message", "group") else scope.presence

    def _map(self, element: ast.MapField, scope: _Scope) -> ProtoField:
        options = {option.name: _written(option.value) for option in element.options}
        _, type = self._type(element.value_type, scope, element.name)
        json_name = options.get("json_name") or _json_name(element.name)
        field = ProtoField(
            element.number, element.name, "map", type, "map", json_name, key=element.key_type
        )
        self._maps.append((scope, field))
        return field

    def check_maps(self) -> None:
        """Hold maps to a rule on enums, when all of them are known."""
        for scope, field in self._maps:
            enum = self._enums.get(field.type)
            if enum is not None and next(iter(enum.values), 0) != 0:
                why = f"the first value of {enum.name} must have the number 0 for a map."
                self._wrong(scope, scope.full(field.name), why)

    def _type(self, name: str, scope: _Scope, member: str) -> tuple[Kind, str]:
        """A type's kind and full name, looked for from the inside out."""
        name = name.replace(" ", "")
        if name in SCALARS:
            return "scalar", name
        for candidate in _candidates(name, scope.name):
            if candidate in self._kinds:
                return self._kinds[candidate], candidate
        if not scope.has_foreign:
            why = f"the type {one_line(name, SHOWN_MAX)} is not defined."
            self._wrong(scope, scope.full(member), why)
        return "foreign", name.removeprefix(".")

    def _check_fields(
        self, fields: list[ProtoField], scope: _Scope, ranges: Ranges, names: frozenset[str]
    ) -> None:
        numbers: set[int] = set()
        texts: set[str] = set()
        json_names: set[str] = set()
        for field in fields:
            full = scope.full(field.name)
            if not 0 < field.number <= NUMBER_MAX or field.number in KEPT_NUMBERS:
                why = f"{field.number} is no number of a field: 1 to {NUMBER_MAX} are, but for "
                self._wrong(scope, full, f"{why}19000 to 19999.")
            elif field.number in numbers:
                self._wrong(scope, full, f"another field has the number {field.number}.")
            elif end_of(ranges, field.number) is not None:
                self._wrong(scope, full, f"the number {field.number} is reserved.")
            if field.name in texts:
                self._wrong(scope, full, "another field has this name.")
            elif field.json_name in json_names and scope.syntax != _PROTO2:
                self._wrong(scope, full, f'another field is "{field.json_name}" in JSON.')
            if field.name in names:
                self._wrong(scope, full, "the name is reserved.")
            numbers.add(field.number)
            texts.add(field.name)
            json_names.add(field.json_name)

    def _define_extension(self, extension: ast.Extension, scope: _Scope) -> None:
        """The extensions of a message, kept by the scope that defines them."""
        groups = [e for e in extension.elements if isinstance(e, ast.Group)]
        self.define(groups, scope)
        _, extended = self._type(extension.typeName, scope, f"extend {extension.typeName}")
        name = scope.full(f"extend {extended}")
        known = self._messages.get(name, ProtoMessage(name))
        fields = {field.number: field for field in self._fields(extension.elements, scope)}
        self._messages[name] = ProtoMessage(name, {**known.fields, **fields})

    # Enums and services

    def _define_enum(self, enum: ast.Enum, scope: _Scope) -> None:
        full = scope.full(enum.name)
        values = [e for e in enum.elements if isinstance(e, ast.EnumValue)]
        reserved = [e for e in enum.elements if isinstance(e, ast.EnumReserved)]
        options = [e for e in enum.elements if isinstance(e, ast.Option)]
        ranges, names = self._reserved(reserved, ENUM_MAX, scope.within(enum.name))
        has_aliases = any(o.name == "allow_alias" and o.value is True for o in options)
        by_number: dict[int, frozenset[str]] = {}
        for option in options:
            self._note_feature(option, full)
        if not values:
            self._wrong(scope, full, "an enum has at least one value.")
        elif scope.syntax != _PROTO2 and values[0].number != 0:
            self._wrong(scope, full, "the first value of an enum has the number 0.")
        for value in values:
            # The names of values are siblings of the enum's.
            self._declare(value.name, scope, None)
            if value.number in by_number and not has_aliases:
                self._wrong(scope, full, f"two values have the number {value.number}.")
            if end_of(ranges, value.number) is not None or value.name in names:
                self._wrong(scope, full, f"{value.name} or its number is reserved.")
            known = by_number.get(value.number, frozenset())
            by_number[value.number] = known | {value.name}
        self._enums[full] = ProtoEnum(full, by_number, ranges, names)

    def _define_service(self, service: ast.Service, scope: _Scope) -> None:
        inner = scope.within(service.name)
        methods = [e for e in service.elements if isinstance(e, ast.Method)]
        for method in methods:
            options = {
                e.name: _written(e.value) for e in method.elements if isinstance(e, ast.Option)
            }
            full = inner.full(method.name)
            self._declare(method.name, inner, None)
            self._methods[full] = ProtoMethod(
                full,
                self._message_type(method.input_type.type, inner, method.name),
                self._message_type(method.output_type.type, inner, method.name),
                method.input_type.stream,
                method.output_type.stream,
                options.get("idempotency_level", "IDEMPOTENCY_UNKNOWN"),
            )
        self._services[inner.name] = frozenset(inner.full(method.name) for method in methods)

    def _message_type(self, name: str, scope: _Scope, method: str) -> str:
        kind, type = self._type(name, scope, method)
        if kind not in ("message", "group", "foreign"):
            self._wrong(scope, scope.full(method), f"{one_line(name, SHOWN_MAX)} is no message.")
        return type


def _ranges(texts: list[str], most: int) -> list[tuple[int, int]]:
    """Ranges such as `2`, `4 to 9` and `100 to max`, in order."""
    pairs = []
    for text in texts:
        # Longer numbers are out of every range anyway, and Python refuses the longest.
        first, *last = (part.strip()[:12] for part in text.split("to"))
        high = most if last == ["max"] else int(last[0]) if last else int(first)
        pairs.append((int(first), high))
    return sorted(pairs)


def _joined(pairs: list[tuple[int, int]]) -> Ranges:
    """Ranges in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for low, high in pairs:
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def _candidates(name: str, scope: str) -> Iterator[str]:
    """The full names that a name may stand for, the innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name


def _json_name(name: str) -> str:
    """A field's name in JSON: without underscores, each letter after one in upper case."""
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _fits_type(value: Any, kind: Kind, type: str) -> bool:
    """Whether a field of a type can have a default value."""
    if kind == "foreign":
        return True
    if kind == "enum":
        return isinstance(value, ast.Identifier)
    if type in ("string", "bytes"):
        return isinstance(value, str)
    if type == "bool":
        return isinstance(value, bool)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return kind == "scalar" and is_number and (type in _FLOATS or isinstance(value, int))


def _written(value: Any) -> str:
    """An option's value as text, the same for equal values."""
    if isinstance(value, ast.Identifier):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
