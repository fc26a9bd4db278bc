"""Holds requests and answers of an HTTP operation against its contract."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from contracts.model import Interface, Located, Operation, Parameter, Part
from contracts.standalone import standalone
from proof.effort import EFFORT_MAX, effort
from proof.messages import (
    WireAnswer,
    WireRequest,
    encoded_path,
    fits_media,
    header_of,
    is_json,
    json_of,
    media_of,
)
from proof.parameters import Pairs, TypesOf, readings
from proof.validators import Misfit, SchemaValidator
from schemas.dialect import Direction
from schemas.plain import one_line

FORM = "application/x-www-form-urlencoded"
SHOWN_MAX = 100
_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")


class RuleBreach(NamedTuple):
    """How a message breaks the contract: the rule, where in it, and what would be right."""

    rule: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why


class ValueCheck:
    """A schema of an interface, ready to check values in one direction."""

    def __init__(self, interface: Interface, located: Located, direction: Direction) -> None:
        self._given = interface, located, direction

    @cached_property
    def schema(self) -> dict[str, Any]:
        interface, located, direction = self._given
        return standalone(interface, located, direction)

    @cached_property
    def validator(self) -> SchemaValidator:
        return SchemaValidator(self.schema)

    @cached_property
    def types(self) -> TypesOf:
        return TypesOf(self.schema)

    @property
    def located(self) -> Located:
        return self._given[1]


def reads_as_json(media: str, given: str, check: ValueCheck) -> bool:
    """Whether a body of a media type is read as JSON: one that says so, or one that a range such as
    `*/*` declares, with a schema that no text fits."""
    named = is_json(media) or media.endswith(("/json", "/x-json"))
    return named or ("*" in given and "string" not in check.types.whole)


class PartCheck:
    """A request or response of an operation, ready to check messages."""

    def __init__(self, interface: Interface, part: Part, direction: Direction) -> None:
        self.part, self.direction = part, direction
        self.parameters = [
            (parameter, ValueCheck(interface, parameter.schema, direction))
            for parameter in part.parameters
        ]
        self.bodies = {
            media: ValueCheck(interface, schema, direction) for media, schema in part.bodies.items()
        }

    @property
    def checks(self) -> list[ValueCheck]:
        """The schemas of its parameters or headers, and of its bodies."""
        return [*(check for _, check in self.parameters), *self.bodies.values()]

    def body_breaches(self, media: str, body: bytes) -> list[RuleBreach]:
        """What is wrong with a body of a media type."""
        given = fits_media(media, self.bodies)
        right = " or ".join(self.bodies)
        if given is None:
            what = f"it is {one_line(media, SHOWN_MAX)}" if media else "it says no media type"
            return [RuleBreach("media_type", "header Content-Type", f"{what}; right is {right}.")]
        check = self.bodies[given]
        if is_json(media) or (self.direction == "response" and reads_as_json(media, given, check)):
            try:
                value = json_of(body)
            except ValueError as error:
                return [RuleBreach("malformed_body", "body", f"It is no JSON: {error}.")]
            return _at("body", "body", check.validator.misfits(value))
        if media == FORM:
            return self._form_breaches(check, body)
        if media.startswith("text/") and check.types.whole == {"string"}:
            return _at("body", "body", check.validator.misfits(body.decode(errors="replace")))
        return []

    def _form_breaches(self, check: ValueCheck, body: bytes) -> list[RuleBreach]:
        pairs = parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
        whole = Parameter("", "query", True, check.located, ())
        fitting = [*readings(whole, pairs, frozenset({"object"}), check.types.members), {}]
        if any(check.validator.accepts(value) for value in fitting):
            return []
        return _at("body", "body", check.validator.misfits(fitting[0]))

    def parameter_breaches(
        self, parameter: Parameter, check: ValueCheck, pairs: Pairs
    ) -> list[RuleBreach]:
        """What is wrong with a parameter or header, which may be absent."""
        where = f"{parameter.place} {parameter.name}"
        values = list(readings(parameter, pairs, check.types.whole, check.types.members))
        if not values:
            if not parameter.required:
                return []
            return [RuleBreach("missing", where, "It is required, and missing.")]
        if any(check.validator.accepts(value) for value in values):
            return []
        return _at(parameter.place, where, check.validator.misfits(values[0]))


class OperationCheck:
    """An HTTP operation, ready to check its requests and answers."""

    def __init__(self, interface: Interface, operation: Operation) -> None:
        self.interface, self.operation = interface, operation
        self.request = PartCheck(interface, operation.request, "request")
        self.responses = {
            status: PartCheck(interface, part, "response")
            for status, part in operation.responses.items()
        }
        self._route = re.compile(_route_pattern(operation.route))
        self._names = _PLACEHOLDER.findall(operation.route)
        self.literals = len(_PLACEHOLDER.sub("", operation.route))

    @property
    def key(self) -> str:
        return self.operation.key

    @cached_property
    def is_endless(self) -> bool:
        """Whether one of its schemas has so much in it that holding a value against it takes too
        long."""
        parts = (self.request, *self.responses.values())
        return any(effort(check.schema) > EFFORT_MAX for part in parts for check in part.checks)

    def matches(self, path: str) -> bool:
        """Whether a percent-encoded path, without the base path, is this operation's."""
        return self._route.fullmatch(path) is not None

    def response_for(self, status: int) -> tuple[str, PartCheck] | None:
        """The declared response of a status, and the name that it is declared by."""
        for name in (str(status), f"{status // 100}XX", "default"):
            if name in self.responses:
                return name, self.responses[name]
        return None

    def request_breaches(self, request: WireRequest, path: str) -> list[RuleBreach]:
        """What is wrong with a request, whose path without the base path matches."""
        pairs = self._pairs(request, path)
        breaches = [
            breach
            for parameter, check in self.request.parameters
            for breach in self.request.parameter_breaches(
                parameter, check, pairs.get(parameter.place, [])
            )
        ]
        if not self.request.bodies:
            return breaches
        if request.body:
            return breaches + self.request.body_breaches(media_of(request.headers), request.body)
        if self.request.part.body_required:
            right = " or ".join(self.request.bodies)
            breaches.append(RuleBreach("missing", "body", f"It is required, of {right}."))
        return breaches

    def _pairs(self, request: WireRequest, path: str) -> Mapping[str, Pairs]:
        match = self._route.fullmatch(path)
        parts = match.groups() if match else ()
        names = {p.name.lower(): p.name for p, _ in self.request.parameters if p.place == "header"}
        cookies = header_of(request.headers, "cookie") or ""
        pairs = (pair.strip().partition("=") for pair in cookies.split(";"))
        return {
            "path": [(n, unquote(part)) for n, part in zip(self._names, parts, strict=False)],
            "query": request.pairs,
            "header": [(names.get(n.lower(), n), value) for n, value in request.headers],
            "cookie": [(name, unquote(value)) for name, _, value in pairs],
        }

    def answer_breaches(self, answer: WireAnswer, method: str) -> list[RuleBreach]:
        """What is wrong with an answer."""
        declared = self.response_for(answer.status)
        if declared is None:
            right = ", ".join(self.responses) or "nothing"
            why = f"It is {answer.status}; declared is {right}."
            return [RuleBreach("undeclared_status", "status", why)]
        _, check = declared
        names = {p.name.lower(): p.name for p, _ in check.parameters}
        pairs = [(names.get(n.lower(), n), value) for n, value in answer.headers]
        breaches = [
            breach
            for parameter, value_check in check.parameters
            for breach in check.parameter_breaches(parameter, value_check, pairs)
        ]
        without_body = method == "HEAD" or answer.status in (204, 304)
        if without_body or not check.bodies:
            return breaches
        return breaches + check.body_breaches(media_of(answer.headers), answer.body)


def _at(rule: str, where: str, misfits: Iterable[Misfit]) -> list[RuleBreach]:
    return [
        RuleBreach(f"{rule}_schema", f"{where}{misfit.where}", misfit.why) for misfit in misfits
    ]


def _route_pattern(route: str) -> str:
    """The regular expression of a route's paths; a placeholder is a part without a slash."""
    parts = _PLACEHOLDER.split(route)
    return "".join(
        "([^/]+)" if n % 2 else re.escape(encoded_path(part)) for n, part in enumerate(parts)
    )


def operation_checks(interface: Interface) -> list[OperationCheck]:
    """The HTTP operations that consumers call, those with fewer placeholders first."""
    checks = [
        OperationCheck(interface, operation)
        for operation in interface.operations
        if operation.kind == "http" and operation.route and operation.caller == "consumer"
    ]
    return sorted(checks, key=lambda check: -check.literals)
