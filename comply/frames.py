"""What an agent says, held against the official schema of the protocol version that was negotiated
(`comply/protocol/`) and against JSON-RPC (`comply.bookkeeping`)."""

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

from comply.bookkeeping import Entry, Said, follow
from schemas.jsont import JsonObject

FOLDER = Path(__file__).parent / "protocol"
VERSIONS = (1, 2)
"""The protocol versions that have a schema; 2 is the published preview."""
LAST_VERSION = 2**16 - 1
"""No version is greater."""
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that the message at `place` breaks."""

    place: int
    text: str


def breaches(said: Iterable[Said]) -> Iterator[Breach]:
    """What the subject said against the rules, one for each message at most."""
    version = VERSIONS[0]
    for entry in follow(said):
        agreed = _agreed(entry)
        version = version if agreed is None else agreed
        if entry.sent:
            continue
        problem = entry.problem
        if problem is None and version in VERSIONS:
            problem = protocol(version).problem(entry)
        if problem is not None:
            yield Breach(entry.place, problem)


def _agreed(entry: Entry) -> int | None:
    """The version that `initialize` asks for, if it is one that we know, and then the one that its
    answer names, if it can be one."""
    message, request = entry.message, entry.request or {}
    if request.get("method") != "initialize" or not isinstance(message, dict):
        return None
    said = message.get("params" if entry.sent else "result")
    found = said.get("protocolVersion") if isinstance(said, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if found in VERSIONS or (not entry.sent and 0 <= found <= LAST_VERSION) else None


@cache
def protocol(version: int) -> "Protocol":
    return Protocol(json.loads((FOLDER / f"v{version}.json").read_text(encoding="utf-8")), version)


class Protocol:
    """One version's schema. Its definitions name their method and the side that serves it."""

    def __init__(self, schema: JsonObject, version: int) -> None:
        definitions: Any = schema["$defs"]
        self.version = version
        self.validator: Any = _validator()({"$defs": definitions}, format_checker=_formats())
        self.definitions = definitions
        self.methods: dict[tuple[str, str], dict[str, str]] = {}
        """By side and method: the definitions of its request or notification, and answer."""
        for name, definition in definitions.items():
            if "x-method" in definition:
                kind = next(one for one in _KINDS if name.endswith(one))
                served = self.methods.setdefault((definition["x-side"], definition["x-method"]), {})
                served[kind] = name

    def problem(self, entry: Entry) -> str | None:
        """What the schema has against a message of an agent."""
        message = entry.message
        assert isinstance(message, dict)
        if "method" in message:
            return self._called(str(message["method"]), message)
        if "error" in message:
            return self._unlike("Error", message["error"], "error")
        method = (entry.request or {}).get("method")
        definition = self.methods.get(("agent", str(method)), {}).get(_RESPONSE)
        if definition is None:
            return None
        problem = self._unlike(definition, message["result"], "result")
        return problem and f"the answer to {method}: {problem}"

    def _called(self, method: str, message: JsonObject) -> str | None:
        if method.startswith("_"):
            return None
        side = "protocol" if method.startswith("$/") else "client"
        served = self.methods.get((side, method))
        if served is None:
            if side == "protocol":
                return None
            whose = "a method of agents" if ("agent", method) in self.methods else "no method"
            return (
                f"{method} is {whose} in version {self.version}; a name of one's own begins with _"
            )
        if ("id" in message) is (_NOTIFICATION in served):
            needs = "no id: it is a notification" if "id" in message else "an id: it is a request"
            return f"{method} needs {needs}"
        definition = served.get(_REQUEST) or served[_NOTIFICATION]
        params = message.get("params")
        if params is None and not self.definitions[definition].get("required"):
            return None
        problem = self._unlike(definition, params, "params")
        return problem and f"{method}: {problem}"

    def _unlike(self, definition: str, value: JsonValue, name: str) -> str | None:
        """Where a value is not what its definition says."""
        found = self.validator.descend(value, {"$ref": f"#/$defs/{definition}"})
        error = next(iter(found), None)
        return None if error is None else _told(error, name)


_REQUEST, _RESPONSE, _NOTIFICATION = _KINDS = "Request", "Response", "Notification"


def _told(error: ValidationError, name: str) -> str:
    """The place and the problem, of the alternative that was meant."""
    where = name
    while True:
        where += "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.path)
        meant = _meant(error)
        if meant is None:
            return f"{where}{_said(error)}"
        error = meant


def _meant(error: ValidationError) -> ValidationError | None:
    """Of alternatives none of which is met, the problem of the one that was meant; None when
    there is no telling which was."""
    branches: dict[Any, list[ValidationError]] = {}
    for one in error.context or ():
        branches.setdefault(one.schema_path[0], []).append(one)
    if error.validator not in ("anyOf", "oneOf") or not branches:
        return None
    # What is not null was not meant to be null.
    likely = [them for them in branches.values() if them[0].validator_value != "null"]
    named = [them for them in likely if not any(one.validator in ("const", "not") for one in them)]
    if len(named) == 1:
        return named[0][0]
    common = set.intersection(
        *(
            {
                name
                for one in them
                if one.validator == "required" and not one.path
                for name in one.validator_value
            }
            for them in likely
        )
    ) - set(error.instance if isinstance(error.instance, dict) else ())
    if common:
        return ValidationError("", "required", instance={}, validator_value=sorted(common))
    if not named:
        return _tag(likely)
    deepest = max(named, key=lambda them: min(len(one.path) for one in them))
    return deepest[0] if deepest[0].path else None


def _tag(branches: list[list[ValidationError]]) -> ValidationError | None:
    """The tag that names no alternative: the constant that all of them have at one place."""
    for one in branches[0] if branches else ():
        if one.validator == "const" and one.path:
            constants = (other for them in branches for other in them if other.path == one.path)
            names = [other.validator_value for other in constants if other.validator == "const"]
            return ValidationError(
                "", "enum", one.path, instance=one.instance, validator_value=names
            )
    return None


def _said(error: ValidationError) -> str:
    """The problem, to follow its place."""
    value, rule = error.instance, error.validator_value
    match error.validator:
        case "required":
            missing = next(one for one in rule if one not in value)
            return f".{missing} is missing"
        case "type":
            wanted = rule if isinstance(rule, str) else " or ".join(rule)
            return f" is {_short(value)}, should be {_ARTICLES.get(wanted, wanted)}"
        case "const":
            return f" is {_short(value)}, should be {_short(rule)}"
        case "enum":
            return f" is {_short(value)}, should be one of {', '.join(map(str, rule))}"
        case "anyOf" | "oneOf":
            names = [one["const"] for one in rule if "const" in one]
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
    """A validator that goes straight to the alternative that a tag names (`type`,
    `sessionUpdate`): the same answers ten times as fast, with the problem of that one alone."""

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

    rules = {one: straight(one) for one in ("anyOf", "oneOf")}
    return extend(Draft202012Validator, rules | {"contentEncoding": encoded})


def _tags(alternatives: list[Any]) -> dict[tuple[str, str], Any]:
    """The alternatives by their tag, if it decides: each has one, or is for all other tags."""
    found: dict[tuple[str, str], Any] = {}
    for one in alternatives:
        required = one.get("required", ())
        tag = [
            (name, rule["const"])
            for name, rule in one.get("properties", {}).items()
            if name in required and isinstance(rule.get("const"), str)
        ]
        if tag and "not" not in one:
            found[tag[0]] = one
        elif "not" not in one:
            return {}
    return found


@cache
def _formats() -> FormatChecker:
    """The formats that the schemas name: bounds of whole numbers, and three kinds of text."""
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
