"""Reads the specification's own form of an endpoint, as agents write it.

`{"method": "GET", "path": "/users/{id}", "query": {…}, "responses": {"200": {…}}}`
Bodies and parameters are JSON Schemas or shorthand. A content with a request or response and no
method is read the same way: it is an exchange, of which nobody said how it is called.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from contracts.json_schema import draft_of
from contracts.model import Draft, Interface, Located, Operation, Parameter, ParameterPlace, Part
from contracts.openapi_parts import (
    by_media,
    merged,
    parameters_of,
    response,
    status_name,
    unnamed,
    with_path_parameters,
)
from contracts.reading import HTTP_METHODS, ContentReading, at, shown
from contracts.schema_check import check_schemas
from contracts.shorthand import ShorthandReader, is_schema, is_shorthand, type_of

REQUESTS = ("request", "requestBody", "request_body", "body")
RESPONSES = ("response", "responseBody", "response_body")
_BY_STATUS = ("responses", "errors")
_PARAMETERS: Mapping[str, ParameterPlace] = {
    "headers": "header",
    "query": "query",
    "queryParams": "query",
    "query_params": "query",
    "queryParameters": "query",
    "pathParams": "path",
    "path_params": "path",
    "pathParameters": "path",
    "cookies": "cookie",
}
_WORDS = frozenset(
    {
        "title", "name", "description", "summary", "notes", "example", "examples", "deprecated",
        "tags", "operationId", "$schema", "$defs", "definitions", "components",
    }
)  # fmt: skip
_READ = frozenset(
    {"method", "path", "parameters", "status", *REQUESTS, *RESPONSES, *_BY_STATUS, *_PARAMETERS}
)
_MEDIA = frozenset({"content", "description", "required", "headers", "links"})
_RESPONSE_ENVELOPE = frozenset({"status", "headers", "body", "description", "contentType"})
_REQUEST_ENVELOPE = frozenset({"body", "parameters", "description", "contentType", *_PARAMETERS})
_COLON = re.compile(r"/:([A-Za-z_]\w{0,99})")
_TEMPLATE = re.compile(r"\{[^{}]{0,100}\}")
JSON = "application/json"


def is_endpoint(content: Mapping[str, Any]) -> bool:
    """Whether a content has a method and a path, or a request or response."""
    if isinstance(content.get("method"), str) and isinstance(content.get("path"), str):
        return True
    names = {*REQUESTS, *RESPONSES, "responses"} - {"body"}
    return not content.keys().isdisjoint(names) and not is_schema(content)


def read_endpoint(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """The operation of an endpoint. Raises TooMuchWork beyond the budget."""
    reading = ContentReading(content)
    endpoint = _Endpoint(reading)
    operation = endpoint.operation()
    draft: Draft = "2020-12"
    schemas = endpoint.schemas
    if any(draft_of(place.schema) == "draft-07" for place in (*schemas, Located(content, ()))):
        draft = "draft-07"
    check_schemas(reading, schemas, draft)
    return reading.interface("endpoint", draft, [operation])


class _Endpoint:
    """Reads one endpoint. `schemas` are those in it."""

    def __init__(self, reading: ContentReading) -> None:
        self.reading = reading
        self.root = Located(reading.content, ())
        self.shorthand = ShorthandReader(reading.misfit)
        self.schemas = self.shorthand.schemas
        self.media = JSON

    def operation(self) -> Operation:
        content = self.reading.content
        method, route = self._method(), self._route()
        parameters: list[Parameter] = []
        bodies: dict[str, Located] = {}
        required = False
        for place in self._sources(parameters):
            if bodies:
                self.reading.wrong(place, "The request's body is described twice.")
            else:
                bodies, required = self._request_body(place)
        answers = self._answers()
        for name in content:
            if name not in _WORDS | _READ and not name.startswith("x-"):
                self.reading.leave(at(self.root, name))
        return Operation(
            f"{method} {unnamed(route)}".strip() or "exchange",
            "http",
            (),
            Part(
                (),
                with_path_parameters(self.reading, merged([], parameters), route, self.root),
                bodies,
                required,
            ),
            answers,
            method,
            route,
        )

    def _method(self) -> str:
        given = self.reading.content.get("method")
        if isinstance(given, str) and given.lower() in HTTP_METHODS:
            return given.upper()
        if given is not None:
            why = f'"method" is one of {", ".join(HTTP_METHODS).upper()}; this is {shown(given)}.'
            self.reading.wrong(at(self.root, "method"), why)
        return ""

    def _route(self) -> str:
        given = self.reading.content.get("path")
        if given is None:
            return ""
        place = at(self.root, "path")
        if not isinstance(given, str) or not given.startswith("/"):
            self.reading.wrong(place, f'"path" is like "/users/{{id}}"; this is {shown(given)}.')
            return ""
        route, _, query = given.partition("?")
        if query:
            self.reading.wrong(place, 'Parameters behind "?" are described in "query".')
        return _COLON.sub(r"/{\1}", route)

    def _sources(self, parameters: list[Parameter]) -> Iterator[Located]:
        """Reads the parameters, and gives the descriptions of a body that there are."""
        yield from self._parts(self.root, parameters, REQUESTS)

    def _parts(
        self, place: Located, parameters: list[Parameter], bodies: tuple[str, ...]
    ) -> Iterator[Located]:
        for name, given in place.schema.items():
            here = Located(given, (*place.path, name))
            if given is None or (name == "body" and "path" not in self.reading.content):
                continue
            if name in _PARAMETERS:
                parameters += self._parameters(here, _PARAMETERS[name])
            elif name == "parameters" and isinstance(given, list):
                parameters += parameters_of(self.reading, here)
            elif name == "parameters":
                parameters += self._parameters(here, "query")
            elif name in bodies and name != "body" and self._is_envelope(here, _REQUEST_ENVELOPE):
                yield from self._parts(here, parameters, ("body",))
            elif name in bodies:
                yield here

    def _is_envelope(self, place: Located, names: frozenset[str]) -> bool:
        """Whether a request or response is described by its parts, rather than its body alone."""
        given = place.schema
        if not isinstance(given, dict) or not given or not given.keys() <= names:
            return False
        others = given.keys() - {"body", "description"}
        if any(isinstance(given[name], str) and type_of(given[name]) for name in given):
            return False
        if not others and not ("body" in given and isinstance(given["body"], dict | list)):
            return False
        if not others:
            self.reading.warn(
                place,
                '"body" was taken for the whole body: if it is one member, write a JSON Schema.',
            )
        return True

    def _parameters(self, place: Located, where: ParameterPlace) -> Iterator[Parameter]:
        """Parameters by name, as members of a JSON Schema, or as a list of their names."""
        given = place.schema
        if isinstance(given, list):
            given = {name: "any" for name in given if isinstance(name, str)}
            if len(given) != len(place.schema):
                self.reading.wrong(place, "A list of parameters is one of their names.")
                return
            names = {name: Located(True, place.path) for name in given}
            needed = {name: not name.endswith("?") for name in given}
            for name in given:
                yield self._parameter(name.removesuffix("?"), where, names[name], needed[name])
        elif is_schema(given) and isinstance(given.get("properties"), dict):
            required = given.get("required")
            listed = required if isinstance(required, list) else []
            for name in given["properties"]:
                member = at(place, "properties", name)
                self.schemas.append(member)
                yield self._parameter(name, where, member, name in listed)
        elif isinstance(given, dict):
            for name in given:
                yield from self._named_parameter(name, where, at(place, name))
        else:
            why = (
                f'Parameters are described by name: {{"page": "integer?"}}; this is {shown(given)}.'
            )
            self.reading.wrong(place, why)

    def _named_parameter(
        self, name: str, where: ParameterPlace, place: Located
    ) -> Iterator[Parameter]:
        plain = name.removesuffix("?")
        if where == "header" and plain.lower() in ("content-type", "accept"):
            if plain.lower() == "content-type" and _is_media(place.schema):
                self.media = " ".join(place.schema.lower().split())
            else:
                self.reading.leave(place)
            return
        if isinstance(place.schema, str) and _TEMPLATE.search(place.schema):
            schema, is_needed = {"type": "string", "pattern": _pattern(place.schema)}, True
        else:
            schema, is_needed = self.shorthand.member(place)
        shown_at = Located(schema, place.path)
        yield self._parameter(plain, where, shown_at, is_needed and plain == name)

    def _parameter(
        self, name: str, where: ParameterPlace, schema: Located, is_needed: bool
    ) -> Parameter:
        self.reading.step()
        return Parameter(name, where, is_needed or where == "path", schema, schema.path)

    def _body(self, place: Located) -> Located:
        return Located(self.shorthand.schema(place), place.path, place.file)

    def _request_body(self, place: Located) -> tuple[dict[str, Located], bool]:
        if _has_media(place.schema):
            bodies = dict(by_media(self.reading, at(place, "content")))
            self.schemas += bodies.values()
            return bodies, place.schema.get("required") is True
        if place.schema in ({}, "none", "empty"):
            return {}, False
        return {self.media: self._body(place)}, True

    # --- responses --------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Part]:
        parts: dict[str, Part] = {}
        content = self.reading.content
        for name in _BY_STATUS:
            if name in content:
                place = at(self.root, name)
                if name == "errors" and not _is_by_status(content[name]):
                    self.reading.leave(place)
                else:
                    self._by_status(place, parts)
        for name in RESPONSES:
            if content.get(name) is not None:
                place = at(self.root, name)
                if _is_by_status(place.schema):
                    self._by_status(place, parts)
                else:
                    self._success(place, parts)
        if content.get("status") is not None and not any(name in content for name in RESPONSES):
            self.reading.leave(at(self.root, "status"))
        return parts

    def _by_status(self, place: Located, parts: dict[str, Part]) -> None:
        for status in self.reading.members(place, f'"{place.path[-1]}"') or {}:
            here = at(place, status)
            name = status_name(status)
            if name is None:
                why = f'{shown(status)} is no status: it is one such as "200", "4XX" or "default".'
                self.reading.wrong(here, why)
            else:
                self._add(name, self._part(here), parts)

    def _success(self, place: Located, parts: dict[str, Part]) -> None:
        """What is answered if no status is named: any of success, or the one given beside it."""
        status = self.reading.content.get("status", "2XX")
        if self._is_envelope(place, _RESPONSE_ENVELOPE) and "status" in place.schema:
            status = place.schema["status"]
        name = status_name(str(status)) if isinstance(status, str | int) else None
        if name is None:
            self.reading.wrong(place, f"{shown(status)} is no status.")
        else:
            self._add(name, self._part(place), parts)

    def _add(self, name: str, part: Part, parts: dict[str, Part]) -> None:
        if name in parts:
            self.reading.wrong(Located(None, part.path), f"The response {name} is described twice.")
        else:
            parts[name] = part

    def _part(self, place: Located) -> Part:
        """A response: its body alone, or its parts."""
        self.reading.step()
        given = place.schema
        if isinstance(given, str) and type_of(given) is None:
            # Words for readers: "Not found".
            return Part(place.path)
        if given is None or given == {}:
            return Part(place.path)
        if _has_media(given) or _is_described(given):
            part = response(self.reading, place) or Part(place.path)
            self.schemas += part.bodies.values()
            return part
        if isinstance(given, dict) and isinstance(given.get("$ref"), str) and len(given) == 1:
            return self._referred(place)
        if self._is_envelope(place, _RESPONSE_ENVELOPE):
            headers: tuple[Parameter, ...] = ()
            if "headers" in given:
                headers = tuple(self._parameters(at(place, "headers"), "header"))
            media = given.get("contentType")
            name = media.lower() if _is_media(media) else JSON
            bodies = {name: self._body(at(place, "body"))} if given.get("body") is not None else {}
            return Part(place.path, headers, bodies, bool(bodies))
        return Part(place.path, (), {JSON: self._body(place)}, True)

    def _referred(self, place: Located) -> Part:
        """A `$ref` to a whole response, or to the schema of its body."""
        target = self.reading.follow(place)
        if target is not None and _has_media(target.schema):
            return response(self.reading, place) or Part(place.path)
        return Part(place.path, (), {JSON: self._body(place)}, True)


def _is_by_status(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(status_name(name) for name in value)


def _has_media(body: Any) -> bool:
    return (
        isinstance(body, dict)
        and body.keys() <= _MEDIA
        and isinstance(body.get("content"), dict)
        and all("/" in media for media in body["content"])
    )


def _is_described(value: Any) -> bool:
    """Whether a response has only words: `{"description": "Not found"}`."""
    if not isinstance(value, dict) or not value.keys() <= {"description", "headers"}:
        return False
    words = value.get("description")
    return isinstance(words, str) and type_of(words) is None and not is_shorthand(value)


def _is_media(value: Any) -> bool:
    return isinstance(value, str) and "/" in value and len(value) < 100


def _pattern(template: str) -> str:
    """The regular expression of a template: `Bearer {token}` → `^Bearer .+$`."""
    return f"^{'.+'.join(re.escape(part) for part in _TEMPLATE.split(template[:500]))}$"
