"""Validates an agent's messages against the official schema of the negotiated protocol version
(`comply/protocol/`) and against JSON-RPC (`comply.id_tracking`)."""

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError  # type: ignore[import-untyped]
from jsonschema.validators import extend  # type: ignore[import-untyped]
from pydantic import JsonValue

from comply.id_tracking import Said, TrackedMessage, follow
from schemas.jsont import JsonObject

FOLDER = Path(__file__).parent / "protocol"
VERSIONS = (1, 2)
"""The protocol versions with a schema; 2 is the published preview."""
LAST_VERSION = 2**16 - 1
"""The largest valid version."""
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that the message at `place` breaks."""

    place: int
    text: str


def breaches(messages: Iterable[Said]) -> Iterator[Breach]:
    """The rules that the subject's messages break, at most one for each message."""
    version = VERSIONS[0]
    for entry in follow(messages):
        agreed = _agreed(entry)
        version = version if agreed is None else agreed
        if entry.sent:
            continue
        problem = entry.problem
        if problem is None and version in VERSIONS:
            problem = protocol(version).problem(entry)
        if problem is not None:
            yield Breach(entry.place, problem)


def _agreed(entry: TrackedMessage) -> int | None:
    """The version that a request or answer of `initialize` names: in a request only a known one, in
    an answer any valid one."""
    message, request = entry.message, entry.request or {}
    if request.get("method") != "initialize" or not isinstance(message, dict):
        return None
    fields = message.get("params" if entry.sent else "result")
    version = fields.get("protocolVersion") if isinstance(fields, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        return None
    possible = version in VERSIONS or (not entry.sent and 0 <= version <= LAST_VERSION)
    return version if possible else None


@cache
def protocol(version: int) -> "Protocol":
    return Protocol(json.loads((FOLDER / f"v{version}.json").read_text(encoding="utf-8")), version)


class Protocol:
    """One version's schema. Each definition names its method and the side that serves it."""

    def __init__(self, schema: JsonObject, version: int) -> None:
        definitions: Any = schema["$defs"]
        self.version = version
        self.validator: Any = _validator()({"$defs": definitions}, format_checker=_formats())
        self.definitions = definitions
        self.methods: dict[tuple[str, str], dict[str, str]] = {}
        """By side and method: the definitions of request or notification, and of response."""
        for name, definition in definitions.items():
            if "x-method" in definition:
                kind = next(suffix for suffix in _KINDS if name.endswith(suffix))
                served = self.methods.setdefault((definition["x-side"], definition["x-method"]), {})
                served[kind] = name

    def problem(self, entry: TrackedMessage) -> str | None:
        """The rule of the schema that a message of an agent breaks, or None."""
        message = entry.message
        assert isinstance(message, dict)
        if "method" in message:
            return self._call_problem(str(message["method"]), message)
        if "error" in message:
            return self._mismatch("Error", message["error"], "error")
        method = (entry.request or {}).get("method")
        definition = self.methods.get(("agent", str(method)), {}).get(_RESPONSE)
        if definition is None:
            return None
        problem = self._mismatch(definition, message["result"], "result")
        return problem and f"the answer to {method}: {problem}"

    def _call_problem(self, method: str, message: JsonObject) -> str | None:
        if method.startswith("_"):
            return None
        side = "protocol" if method.startswith("$/") else "client"
        served = self.methods.get((side, method))
        if served is None:
            if side == "protocol":
                return None
            whose = "a method of agents" if ("agent", method) in self.methods else "no method"
            return f"{method} is {whose} in version {self.version}; a custom name begins with _"
        if ("id" in message) is (_NOTIFICATION in served):
            needs = "no id: it is a notification" if "id" in message else "an id: it is a request"
            return f"{method} needs {needs}"
        definition = served.get(_REQUEST) or served[_NOTIFICATION]
        params = message.get("params")
        if params is None and not self.definitions[definition].get("required"):
            return None
        problem = self._mismatch(definition, params, "params")
        return problem and f"{method}: {problem}"

    def _mismatch(self, definition: str, value: JsonValue, name: str) -> str | None:
        """Where and how a value differs from its definition, or None."""
        errors = self.validator.descend(value, {"$ref": f"#/$defs/{definition}"})
        error = next(iter(errors), None)
        return None if error is None else _error_text(error, name)


_REQUEST, _RESPONSE, _NOTIFICATION = _KINDS = "Request", "Response", "Notification"


def _error_text(error: ValidationError, name: str) -> str:
    """The place and the problem, within the alternative that was meant."""
    where = name
    while True:
        where += "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.path)
        meant = _alternative_meant(error)
        if meant is None:
            return f"{where}{_problem_text(error)}"
        error = meant


def _alternative_meant(error: ValidationError) -> ValidationError | None:
    """When no alternative matches, the error of the one that was meant; None when that is
    unclear."""
    branches: dict[Any, list[ValidationError]] = {}
    for nested in error.context or ():
        branches.setdefault(nested.schema_path[0], []).append(nested)
    if error.validator not in ("anyOf", "oneOf") or not branches:
        return None
    # A value that is not null was not meant to be null.
    likely = [them for them in branches.values() if them[0].validator_value != "null"]
    named = [
        them for them in likely if not any(nested.validator in ("const", "not") for nested in them)
    ]
    if len(named) == 1:
        return named[0][0]
    common = set.intersection(
        *(
            {
                name
                for nested in them
                if nested.validator == "required" and not nested.path
                for name in nested.validator_value
            }
            for them in likely
        )
    ) - set(error.instance if isinstance(error.instance, dict) else ())
    if common:
        return ValidationError("", "required", instance={}, validator_value=sorted(common))
    if not named:
        return _discriminator_error(likely)
    deepest = max(named, key=lambda them: min(len(nested.path) for nested in them))
    return deepest[0] if deepest[0].path else None


def _discriminator_error(branches: list[list[ValidationError]]) -> ValidationError | None:
    """An error on the discriminator: the constant that all branches have at one place, if any."""
    for nested in branches[0] if branches else ():
        if nested.validator == "const" and nested.path:
            constants = (other for them in branches for other in them if other.path == nested.path)
            names = [other.validator_value for other in constants if other.validator == "const"]
            return ValidationError(
                "", "enum", nested.path, instance=nested.instance, validator_value=names
            )
    return None


def _problem_text(error: ValidationError) -> str:
    """The problem, to follow its place."""
    value, rule = error.instance, error.validator_value
    match error.validator:
        case "required":
            missing = next(field for field in rule if field not in value)
            return f".{missing} is missing"
        case "type":
            wanted = rule if isinstance(rule, str) else " or ".join(rule)
            return f" is {_short(value)}, should be {_ARTICLES.get(wanted, wanted)}"
        case "const":
            return f" is {_short(value)}, should be {_short(rule)}"
        case "enum":
            return f" is {_short(value)}, should be one of {', '.join(map(str, rule))}"
        case "anyOf" | "oneOf":
            names = [alternative["const"] for alternative in rule if "const" in alternative]
            wanted = f"one of {', '.join(map(str, names))}" if names else "of the schema's shape"
            return f" is {_short(value)}, should be {wanted}"
        case _:
            return f" is {_short(value)}, against {error.validator} {_short(rule)}"


_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


def _short(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


@cache
def _validator() -> Any:
    """A validator that goes straight to the alternative named by a tag (`type`, `sessionUpdate`):
    ten times as fast, and its errors are about that alternative alone."""

    def straight(keyword: str) -> Any:
        slow = Draft202012Validator.VALIDATORS[keyword]
        tags: dict[int, dict[tuple[str, str], Any]] = {}

        def alternatives(validator: Any, given: list[Any], instance: Any, schema: Any) -> Any:
            if id(given) not in tags:
                tags[id(given)] = _tags(given)
            known = tags[id(given)]
            if isinstance(instance, dict):
                for (name, value), meant in known.items():
                    if instance.get(name) == value:
                        return validator.descend(instance, meant)
            return slow(validator, given, instance, schema)

        return alternatives

    def encoded(validator: Any, encoding: str, instance: Any, schema: Any) -> Iterator[Any]:
        if encoding == "base64" and isinstance(instance, str) and not _is_base64(instance):
            yield ValidationError("")

    rules = {keyword: straight(keyword) for keyword in ("anyOf", "oneOf")}
    return extend(Draft202012Validator, rules | {"contentEncoding": encoded})


def _tags(alternatives: list[Any]) -> dict[tuple[str, str], Any]:
    """The alternatives by tag; empty unless each has one, or excludes the tags of the others."""
    by_tag: dict[tuple[str, str], Any] = {}
    for alternative in alternatives:
        required = alternative.get("required", ())
        tag = [
            (name, rule["const"])
            for name, rule in alternative.get("properties", {}).items()
            if name in required and isinstance(rule.get("const"), str)
        ]
        if tag and "not" not in alternative:
            by_tag[tag[0]] = alternative
        elif "not" not in alternative:
            return {}
    return by_tag


@cache
def _formats() -> FormatChecker:
    """The formats that the schemas use: bounds of integers, and three kinds of text."""
    formats = FormatChecker(formats=())
    for bits in (16, 32, 64):
        formats.checks(f"uint{bits}")(_bounds(0, 2**bits - 1))
        formats.checks(f"int{bits}")(_bounds(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    formats.checks("double")(lambda value: not isinstance(value, float) or math.isfinite(value))
    formats.checks("uri")(lambda value: not isinstance(value, str) or bool(_URI.match(value)))
    formats.checks("date-time")(lambda value: not isinstance(value, str) or _is_time(value))
    return formats


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z")


def _bounds(low: int, high: int) -> Any:
    def holds(value: object) -> bool:
        return isinstance(value, bool) or not isinstance(value, int | float) or low <= value <= high

    return holds


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    """RFC 3339."""
    if not _TIME.match(text):
        return False
    try:
        datetime.fromisoformat(re.sub(r"\.\d+", "", text.upper().replace(" ", "T")))
    except ValueError:
        return text[17:19] == "60"
    return True
