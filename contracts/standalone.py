"""Makes a schema of an interface into a JSON Schema 2020-12 that stands alone, for validators and
generators of values."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from contracts.model import Interface, Located, Path
from contracts.refs import Resolver
from contracts.schema_check import FORMS
from contracts.subschemas import HOLDERS, adds_null, subschemas
from schemas.dialect import Direction

DEPTH_MAX = 60
"""Levels of schemas that stand in one another; those below become definitions."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DROPPED = frozenset(
    {
        "$schema", "$id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "$ref",
        "$dynamicRef", "$vocabulary", "nullable", "discriminator", "xml", "externalDocs",
        "example", "x-files",
    }
)  # fmt: skip
_ELSEWHERE = _DROPPED | HOLDERS
_REFUSING = ("const", "$ref", "allOf", "anyOf", "oneOf", "not", "if")
"""Keywords by which null may be refused though it is among the types."""
_INTEGERS = {"int32": 2**31, "int64": 2**63}


def standalone(
    interface: Interface, located: Located, direction: Direction | None = None
) -> dict[str, Any]:
    """A schema with all that it refers to in its `$defs`.

    What a dialect or draft writes otherwise is translated: `nullable`, boolean bounds, lists of
    `items`, `dependencies`. Members that are not sent in `direction` are left out: `readOnly` ones
    of a request, `writeOnly` ones of a response. What can't be read (the interface's `problems` and
    `warnings` name it) allows anything. The work is linear in the document.
    """
    bundle = SchemaBundle(interface, direction)
    root = bundle.of(located)
    schema = {"$schema": DRAFT, **(root if isinstance(root, dict) else {"not": {}})}
    definitions = bundle.definitions()
    return schema | {"$defs": definitions} if definitions else schema


class SchemaBundle:
    """The definitions that schemas of an interface refer to, while they are gathered.

    `names` has the name of each definition by its place. Bundles that share it give a place the
    same name.
    """

    def __init__(
        self,
        interface: Interface,
        direction: Direction | None,
        names: dict[tuple[str, Path], str] | None = None,
    ) -> None:
        self._draft = interface.draft
        self._resolver = Resolver(interface.document, interface.files, interface.draft == "2020-12")
        self._hides = {"request": "readOnly", "response": "writeOnly"}.get(direction or "")
        self._names = {} if names is None else names
        self._used = set(self._names.values())
        self._gathered: set[str] = set()
        self._waiting: deque[tuple[str, Located]] = deque()

    def of(self, located: Located) -> Any:
        """A schema, whose references are to `definitions`: an object, or false."""
        return self._schema(located, 0)

    def definitions(self) -> dict[str, Any]:
        """What the schemas of before refer to, by name."""
        definitions: dict[str, Any] = {}
        while self._waiting:
            name, place = self._waiting.popleft()
            definitions[name] = self._schema(place, 0)
        return definitions

    def _schema(self, place: Located, depth: int) -> Any:
        schema = place.schema
        if isinstance(schema, bool):
            return {} if schema else False
        if not isinstance(schema, Mapping):
            return {}
        if depth == DEPTH_MAX:
            return self._reference(place)
        own: dict[str, Any] = {}
        ref = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(ref, str):
            own = self._referred(place, ref)
            if self._draft != "2020-12":
                return own
        own |= self._keywords(place, depth)
        return self._translated(schema, own)

    def _referred(self, place: Located, ref: str) -> dict[str, Any]:
        """A reference to the definition of what a place refers to; nothing if that is nothing."""
        target = self._resolver.resolve(Located({"$ref": ref}, place.path, place.file))
        return self._reference(target) if isinstance(target, Located) else {}

    def _reference(self, place: Located) -> dict[str, Any]:
        key = (place.file, place.path)
        if key not in self._names:
            plain = "".join(c if c.isalnum() else "_" for c in str((*place.path, "root")[-2:][0]))
            name, number = plain[:60], 1
            while name in self._used:
                number += 1
                name = f"{plain[:60]}_{number}"
            self._used.add(name)
            self._names[key] = name
        name = self._names[key]
        if name not in self._gathered:
            self._gathered.add(name)
            self._waiting.append((name, place))
        return {"$ref": f"#/$defs/{name}"}

    def _keywords(self, place: Located, depth: int) -> dict[str, Any]:
        schema = place.schema
        own = {
            name: value
            for name, value in schema.items()
            if name not in _ELSEWHERE and (name not in FORMS or FORMS[name][0](value))
        }
        for path, part in subschemas(schema):
            keyword = path[0]
            if keyword in _DROPPED:
                continue
            inner = self._schema(Located(part, (*place.path, *path), place.file), depth + 1)
            if len(path) == 1:
                own[keyword] = inner
            elif isinstance(path[1], int):
                own.setdefault(keyword, []).append(inner)
            else:
                own.setdefault(keyword, {})[path[1]] = inner
        self._hide(place, own)
        return own

    def _hide(self, place: Located, own: dict[str, Any]) -> None:
        """Leave out the members that are not sent in this direction."""
        hidden = self._hidden(place)
        branches = place.schema.get("allOf")
        for part in branches if self._hides and isinstance(branches, list) else ():
            hidden |= self._hidden(Located(part, place.path, place.file))
        if not hidden:
            return
        for schema in (own, *own.get("allOf", ())):
            if isinstance(schema, dict) and "properties" in schema:
                schema["properties"] = {
                    name: part for name, part in schema["properties"].items() if name not in hidden
                }
            if isinstance(schema, dict) and "required" in schema:
                schema["required"] = [name for name in schema["required"] if name not in hidden]

    def _hidden(self, place: Located) -> set[str]:
        if self._hides is None:
            return set()
        target = self._resolver.resolve(place)
        schema = target.schema if isinstance(target, Located) else None
        members = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(target, Located) or not isinstance(members, Mapping):
            return set()
        places = {
            name: Located(part, (*target.path, "properties", name), target.file)
            for name, part in members.items()
        }
        return {name for name, member in places.items() if self._is_hidden(member)}

    def _is_hidden(self, member: Located) -> bool:
        target = self._resolver.resolve(member)
        schemas = [member.schema, target.schema if isinstance(target, Located) else None]
        return any(isinstance(s, Mapping) and s.get(self._hides) is True for s in schemas)

    def _translated(self, schema: Mapping[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """Keywords of OpenAPI 3.0 and of earlier drafts, in the words of 2020-12."""
        for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if schema.get(word) is True and bound in own:
                own[word] = own.pop(bound)
        if isinstance(schema.get("items"), list):
            own["prefixItems"] = own.pop("items", [])
            if "additionalItems" in own:
                own["items"] = own.pop("additionalItems")
            if not own["prefixItems"]:
                del own["prefixItems"]
        own.pop("additionalItems", None)
        _split_dependencies(schema, own)
        if "example" in schema and "examples" not in own:
            own["examples"] = [schema["example"]]
        limit = _INTEGERS.get(str(own.get("format"))) if own.get("type") == "integer" else None
        if limit is not None:
            own = {"minimum": -limit, "maximum": limit - 1} | own
        return _nullable(own) if adds_null(schema) else own


def _split_dependencies(schema: Mapping[str, Any], own: dict[str, Any]) -> None:
    schemas = own.pop("dependencies", {})
    given = schema.get("dependencies")
    names = {
        name: part
        for name, part in (given.items() if isinstance(given, Mapping) else ())
        if isinstance(part, list)
    }
    if schemas:
        own["dependentSchemas"] = schemas | own.get("dependentSchemas", {})
    if names:
        own["dependentRequired"] = names | own.get("dependentRequired", {})


def _nullable(own: dict[str, Any]) -> dict[str, Any]:
    """A schema that allows null too, as its author meant."""
    kind = own.get("type")
    if kind is None or not own.keys().isdisjoint(_REFUSING):
        return {"anyOf": [own, {"type": "null"}]} if own else own
    kinds = [kind] if isinstance(kind, str) else kind
    own["type"] = [*kinds, *(["null"] if "null" not in kinds else [])]
    if isinstance(own.get("enum"), list) and None not in own["enum"]:
        own["enum"] = [*own["enum"], None]
    return own
