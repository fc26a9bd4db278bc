"""Reads OpenAPI 3.0 and 3.1 into the inner form. 3.2 is read as 3.1, which it adds to."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from contracts.model import (
    Draft,
    Interface,
    Located,
    Operation,
    Parameter,
    Part,
    Path,
    Side,
)
from contracts.openapi_parts import (
    merged,
    parameters_of,
    request_body,
    responses,
    security,
    unnamed,
    unread_members,
    with_path_parameters,
)
from contracts.reading import HTTP_METHODS, ContentReading, at, shown
from contracts.schema_check import check_schemas

CALLBACKS_MAX = 5
"""Callbacks of callbacks, one within the other."""

_DOCUMENT = frozenset(
    {
        "openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks", "components",
        "security", "tags", "externalDocs", "$self",
    }
)  # fmt: skip
_PATH_ITEM = frozenset({"$ref", "summary", "description", "parameters", *HTTP_METHODS})
_OPERATION = frozenset(
    {
        "tags", "summary", "description", "externalDocs", "operationId", "parameters",
        "requestBody", "responses", "callbacks", "deprecated", "security",
    }
)  # fmt: skip


def is_openapi(content: Mapping[str, Any]) -> bool:
    """Whether a content says that it is OpenAPI 3, or has its paths."""
    version = content.get("openapi")
    return isinstance(version, str) if "openapi" in content else _has_paths(content)


def _has_paths(content: Mapping[str, Any]) -> bool:
    paths = content.get("paths")
    return (
        isinstance(paths, dict)
        and bool(paths)
        and "swagger" not in content
        and all(
            route.startswith("/")
            and isinstance(given, dict)
            and not given.keys().isdisjoint(_PATH_ITEM)
            for route, given in paths.items()
        )
    )


def read_openapi(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """The operations of an OpenAPI document. Raises TooMuchWork beyond the budget."""
    reading = ContentReading(content)
    root = Located(content, ())
    draft = _draft(reading, root)
    schemes = _schemes(reading, root)
    reader = _Operations(reading, schemes, _global_security(reading, root, schemes))
    operations = [*reader.of_paths(root), *reader.of_webhooks(root)]
    for place in unread_members(root, _DOCUMENT):
        reading.leave(place)
    check_schemas(reading, _schemas(operations), draft)
    servers = tuple(_servers(reading, root))
    return reading.interface("openapi", draft, operations, schemes, servers)


def _draft(reading: ContentReading, root: Located) -> Draft:
    version = root.schema.get("openapi")
    right = '"openapi" is the version: "3.0.4" or "3.1.1"'
    if version is None:
        why = f"{right}. It is missing, so this was read as 3.1."
        note = reading.misfit if "paths" not in root.schema else reading.warn
        note(root, why)
    elif not isinstance(version, str) or version[:4] not in ("3.0.", "3.1.", "3.2."):
        note_at = at(root, "openapi")
        reading.misfit(note_at, f"{right}; this is {shown(version)}.")
    if isinstance(version, str) and version.startswith("3.0"):
        return "openapi-3.0"
    dialect = root.schema.get("jsonSchemaDialect")
    return "draft-07" if isinstance(dialect, str) and "draft-07" in dialect else "2020-12"


def _schemes(reading: ContentReading, root: Located) -> Mapping[str, Any]:
    components = root.schema.get("components")
    given = components.get("securitySchemes") if isinstance(components, dict) else None
    if not isinstance(given, dict):
        return {}
    places = {name: at(root, "components", "securitySchemes", name) for name in given}
    resolved = {name: reading.follow(place) for name, place in places.items()}
    return {name: place.schema for name, place in resolved.items() if place is not None}


Requirements = tuple[Mapping[str, frozenset[str]], ...] | None


def _global_security(
    reading: ContentReading, root: Located, schemes: Mapping[str, Any]
) -> Requirements:
    return security(reading, at(root, "security"), schemes) if "security" in root.schema else None


class _Operations:
    """Reads the operations of a document."""

    def __init__(
        self, reading: ContentReading, schemes: Mapping[str, Any], requirements: Requirements
    ) -> None:
        self.reading, self.schemes, self.requirements = reading, schemes, requirements
        self._keys: set[str] = set()
        self._open: list[tuple[str, Path]] = []

    def of_paths(self, root: Located) -> Iterator[Operation]:
        if "paths" not in root.schema:
            if "webhooks" not in root.schema and "components" not in root.schema:
                self.reading.misfit(root, 'An OpenAPI document has "paths".')
            return
        paths = at(root, "paths")
        for route in self.reading.members(paths, '"paths"') or {}:
            if route.startswith("x-"):
                continue
            if route.startswith("/"):
                yield from self._of_item(at(paths, route), route, "", "consumer")
            else:
                why = f"A path begins with /; this is {shown(route)}."
                self.reading.wrong(at(paths, route), why)

    def of_webhooks(self, root: Located) -> Iterator[Operation]:
        if "webhooks" in root.schema:
            webhooks = at(root, "webhooks")
            for name in self.reading.members(webhooks, '"webhooks"') or {}:
                yield from self._of_item(at(webhooks, name), "", f"webhook {name}", "provider")

    def _of_item(self, use: Located, route: str, name: str, caller: Side) -> Iterator[Operation]:
        """The operations of a path item. A webhook or callback has a name, but no route."""
        place = self.reading.follow(use)
        if place is None or (given := self.reading.members(place, "A path item")) is None:
            return
        shared = (
            parameters_of(self.reading, at(place, "parameters")) if "parameters" in given else []
        )
        for other in unread_members(place, _PATH_ITEM):
            self.reading.leave(other)
        if use.schema is not given and len(use.schema) > 1:
            self._beside_reference(use)
        for method in HTTP_METHODS:
            if method in given:
                path = (*use.path, method)
                key = f"{method.upper()} {name or unnamed(route)}"
                operation = self._operation(
                    at(place, method), path, key, method, route, shared, caller
                )
                if operation is not None:
                    yield operation
                    yield from self._of_callbacks(at(place, method), operation)

    def _beside_reference(self, use: Located) -> None:
        for name in use.schema:
            if name not in ("$ref", "summary", "description"):
                why = "What stands beside the $ref of a path item is not read: write it there."
                self.reading.wrong(at(use, name), why)

    def _operation(
        self,
        place: Located,
        path: Path,
        key: str,
        method: str,
        route: str,
        shared: list[Parameter],
        caller: Side,
    ) -> Operation | None:
        reading = self.reading
        reading.step()
        given = reading.members(place, "An operation")
        if given is None:
            return None
        if key in self._keys:
            reading.wrong(
                place, f"{key} is there twice: names of placeholders don't tell paths apart."
            )
            return None
        self._keys.add(key)
        own = parameters_of(reading, at(place, "parameters")) if "parameters" in given else []
        parameters = with_path_parameters(reading, merged(shared, own), route, Located(given, path))
        bodies, required = (
            request_body(reading, at(place, "requestBody"))
            if "requestBody" in given
            else ({}, False)
        )
        requirements = self.requirements
        if "security" in given:
            requirements = security(reading, at(place, "security"), self.schemes)
        for other in unread_members(place, _OPERATION):
            reading.leave(other)
        return Operation(
            key,
            "http",
            path,
            Part(path, parameters, bodies, required),
            self._answers(place),
            method.upper(),
            route,
            caller,
            requirements,
        )

    def _answers(self, place: Located) -> Mapping[str, Part]:
        if "responses" in place.schema:
            return responses(self.reading, at(place, "responses"))
        self.reading.warn(place, "The operation has no responses, so none is known.")
        return {}

    def _of_callbacks(self, place: Located, operation: Operation) -> Iterator[Operation]:
        if "callbacks" not in place.schema:
            return
        callbacks = at(place, "callbacks")
        for name in self.reading.members(callbacks, '"callbacks"') or {}:
            callback = self.reading.follow(at(callbacks, name))
            if callback is None or self.reading.members(callback, "A callback") is None:
                continue
            here = (callback.file, callback.path)
            if here in self._open:
                # A callback that is its own callback: what it says has been read.
                continue
            if len(self._open) == CALLBACKS_MAX:
                self.reading.wrong(callback, "Callbacks of callbacks are not read this deep.")
                continue
            self._open.append(here)
            for expression in callback.schema:
                if not expression.startswith("x-"):
                    key = f"callback {name} {expression} of {operation.key}"
                    use = at(callback, expression)
                    yield from self._of_item(use, "", key, "provider")
            self._open.pop()


def _servers(reading: ContentReading, root: Located) -> Iterator[str]:
    """The paths of the servers' addresses, each once, without a slash at the end."""
    given = root.schema.get("servers", [])
    if not isinstance(given, list):
        reading.wrong(at(root, "servers"), f'"servers" is a list; this is {shown(given)}.')
        return
    paths: dict[str, None] = {}
    for number, server in enumerate(given):
        url = server.get("url") if isinstance(server, dict) else None
        if not isinstance(url, str):
            reading.wrong(at(root, "servers", number), 'A server has a "url".')
            continue
        paths[_base_path(url, server.get("variables"))] = None
    yield from paths


def _base_path(url: str, variables: Any) -> str:
    for name, variable in variables.items() if isinstance(variables, dict) else ():
        default = variable.get("default") if isinstance(variable, dict) else None
        if isinstance(default, str):
            url = url.replace(f"{{{name}}}", default)
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return path.rstrip("/") if path.startswith("/") else ""


def _schemas(operations: list[Operation]) -> Iterator[Located]:
    for operation in operations:
        for part in (operation.request, *operation.responses.values()):
            yield from (parameter.schema for parameter in part.parameters)
            yield from part.bodies.values()
