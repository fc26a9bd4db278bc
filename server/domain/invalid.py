"""What a model finds wrong with an input, as a refusal that names each place."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.acp import ENVELOPE_TIME, ENVELOPE_VERSION, UUID7
from schemas.problems import problem_of
from schemas.teamspace import TEAMSPACE_ID
from server.domain.errors import InvalidInput

ERRORS_SHOWN = 5
TYPED = frozenset({"sender_supplied", "type_reserved", "unsupported_version"})
"""Errors of our own models whose type is the refusal's reason (acp-canonical §12.2)."""

PATTERNS = {
    UUID7: "a UUIDv7 in lower case, such as 01a200da-b1c9-768b-93df-5ab80da21e23",
    ENVELOPE_VERSION: "a version 1.x.y; another major version is not supported",
    ENVELOPE_TIME: "a time in UTC as RFC 3339 has it, such as 2026-02-21T09:30:00.000000+00:00",
    TEAMSPACE_ID: "1 to 64 lower-case letters, digits and hyphens, such as login-team",
}
"""What people call the patterns that they meet most."""


def invalid_input(
    error: ValidationError, *, within: str = "", reason: str | None = None
) -> InvalidInput:
    """A model's complaint as a refusal that names each place and what is wrong there.

    `within` is where the model stands in the params; `reason` is that of the refusal.
    """
    found = error.errors(include_url=False, include_input=False)
    problems = [_problem(item, within) for item in found[: ERRORS_SHOWN * 4]]
    typed = next((item["type"] for item in found if item["type"] in TYPED), None)
    shown = "; ".join(f"{one['path']} {one['problem']}" for one in problems[:ERRORS_SHOWN])
    if len(found) > ERRORS_SHOWN:
        shown += f"; and {len(found) - ERRORS_SHOWN} more"
    return InvalidInput(shown, reason=typed or reason, errors=problems)


def _problem(item: ErrorDetails, within: str) -> dict[str, str]:
    steps = [within] if within else []
    path = ".".join([*steps, *(str(part)[:100] for part in item["loc"])]) or "params"
    if item["type"] == "extra_forbidden" and len(item["loc"]) == 1 and not within:
        return {"path": path, "problem": "is not a param of this method"}
    if item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] in PATTERNS:
        return {"path": path, "problem": f"should be {PATTERNS[item['ctx']['pattern']]}"}
    return {"path": path, "problem": problem_of(item)}
