"""Turns a model's validation errors into a refusal that names each place."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.acp import ENVELOPE_TIME, ENVELOPE_VERSION, UUID7
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
    error: ValidationError, *, within: str = "", reason: str | None = None
) -> InvalidInput:
    """The refusal for a model's validation errors, naming each place and what is wrong there.

    `within` is the path of the model in the params; `reason` is that of the refusal.
    """
    errors = error.errors(include_url=False, include_input=False)
    problems = [_problem(item, within) for item in errors[: ERRORS_SHOWN * 4]]
    typed = next((item["type"] for item in errors if item["type"] in TYPED), None)
    shown = "; ".join(map(_sentence, errors[:ERRORS_SHOWN], problems))
    if len(errors) > ERRORS_SHOWN:
        shown += f"; and {len(errors) - ERRORS_SHOWN} more"
    return InvalidInput(shown, reason=typed or reason, errors=problems)


def _sentence(item: ErrorDetails, problem: dict[str, str]) -> str:
    path, text = problem["path"], problem["problem"]
    if path == WHOLE and item["type"] not in FROM_PYDANTIC:
        return text
    return f"{path} is required" if item["type"] == "missing" else f"{path} {text}"


def _problem(item: ErrorDetails, within: str) -> dict[str, str]:
    steps = [within] if within else []
    path = ".".join([*steps, *(str(part)[:100] for part in item["loc"])]) or WHOLE
    if item["type"] == "extra_forbidden" and len(item["loc"]) == 1 and not within:
        return {"path": path, "problem": "is not a param of this method"}
    if item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] in PATTERNS:
        return {"path": path, "problem": f"should be {PATTERNS[item['ctx']['pattern']]}"}
    return {"path": path, "problem": problem_of(item)}
