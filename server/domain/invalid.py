"""Turns a model's validation errors into a refusal that names each place."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from schemas.acp import ENVELOPE_TIME, ENVELOPE_VERSION, UUID7
from schemas.base import JsonObject
from schemas.file import SHA256
from schemas.problems import FROM_PYDANTIC, problem_of
from schemas.teamspace import TEAMSPACE_ID
from server.domain.errors import InvalidInput

ERRORS_SHOWN = 5
TYPED = frozenset({"sender_supplied", "type_reserved", "unsupported_version"})
"""Types of validation errors that become the refusal's reason (acp-canonical §12.2)."""

WHOLE = "params"
"""The path of the params as a whole. What a model of this project says of them is a sentence."""

PATTERNS = {
    UUID7: "a UUIDv7 in lower case, such as 01a200da-b1c9-768b-93df-5ab80da21e23",
    ENVELOPE_VERSION: "a version 1.x.y; another major version is not supported",
    ENVELOPE_TIME: "an RFC 3339 time in UTC, such as 2026-02-21T09:30:00.000000+00:00",
    SHA256: "64 lower-case hex digits",
    TEAMSPACE_ID: "1 to 64 lower-case letters, digits and hyphens, such as login-team",
}
"""Descriptions of the most common patterns."""


def invalid_input(
    error: ValidationError,
    *,
    within: str = "",
    reason: str | None = None,
    model: type[BaseModel] | None = None,
) -> InvalidInput:
    """The refusal for a model's validation errors, naming each place and what is wrong there.

    `within` is the path of the model in the params; `reason` is that of the refusal. With the
    `model`, the message also says what each object takes that was given an unknown member.
    """
    errors = error.errors(include_url=False, include_input=False)
    problems = [_problem(item, within) for item in errors[: ERRORS_SHOWN * 4]]
    typed = next((item["type"] for item in errors if item["type"] in TYPED), None)
    shown = "; ".join(map(_sentence, errors[:ERRORS_SHOWN], problems))
    if len(errors) > ERRORS_SHOWN:
        shown += f"; and {len(errors) - ERRORS_SHOWN} more"
    if model is not None:
        shown += "".join(_taken(model, errors[:ERRORS_SHOWN]))
    return InvalidInput(shown, reason=typed or reason, errors=problems)


def listed(known: Mapping[str, bool]) -> str:
    """Params in a line, the required ones first.

    >>> listed({"limit": False, "projectId": True})
    'projectId (required), limit'
    """
    required = [f"{name} (required)" for name, is_required in known.items() if is_required]
    others = [name for name, is_required in known.items() if not is_required]
    return ", ".join([*required, *others]) or "no params"


def _taken(model: type[BaseModel], errors: list[ErrorDetails]) -> Iterator[str]:
    """A sentence for each object with an unknown member: what it takes."""
    unknown = [item["loc"][:-1] for item in errors if item["type"] == "extra_forbidden"]
    for path in dict.fromkeys(unknown):
        known = _members_at(model, path)
        if known is not None:
            yield f". {'.'.join(map(str, path)) or 'It'} takes {listed(known)}"


def _members_at(model: type[BaseModel], path: tuple[int | str, ...]) -> dict[str, bool] | None:
    """The members of the object at a path, and whether each is required; None if it is unknown."""
    schema = model.model_json_schema(by_alias=True)
    place: Any = schema
    for step in path:
        at = _resolved(schema, place)
        place = at.get("items") if isinstance(step, int) else at.get("properties", {}).get(step)
        if place is None:
            return None
    at = _resolved(schema, place)
    required = at.get("required", ())
    return {name: name in required for name in at.get("properties", {})}


def _resolved(schema: JsonObject, place: JsonObject) -> JsonObject:
    """A part of a schema, without its reference and the null that means absent."""
    kinds = [kind for kind in place.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        return _resolved(schema, kinds[0])
    reference = place.get("$ref")
    return schema["$defs"][reference.rpartition("/")[2]] if reference else place


def _is_unknown_param(item: ErrorDetails) -> bool:
    return item["type"] == "extra_forbidden" and len(item["loc"]) == 1


def _sentence(item: ErrorDetails, problem: dict[str, str]) -> str:
    path, text = problem["path"], problem["problem"]
    if path == WHOLE and item["type"] not in FROM_PYDANTIC:
        return text
    return f"{path} is required" if item["type"] == "missing" else f"{path} {text}"


def _problem(item: ErrorDetails, within: str) -> dict[str, str]:
    steps = [within] if within else []
    path = ".".join([*steps, *(str(part)[:100] for part in item["loc"])]) or WHOLE
    if _is_unknown_param(item) and not within:
        return {"path": path, "problem": "is not a param of this method"}
    if item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] in PATTERNS:
        return {"path": path, "problem": f"should be {PATTERNS[item['ctx']['pattern']]}"}
    return {"path": path, "problem": problem_of(item)}
