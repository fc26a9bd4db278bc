"""The text that teaches an agent to write a report (`schemas.wire`)."""

from schemas.wire_emit import emit
from schemas.wire_message import Report, Tests
from schemas.wire_text import DISPATCH_FIELDS
from schemas.wire_values import OUTCOMES, STATUSES

_EXAMPLE = Report(
    status="ok",
    files_created=("src/middleware/jwt.go", "src/middleware/jwt_test.go"),
    files_modified=("go.mod",),
    tests=Tests(outcome="pass", count=12),
    build="pass",
    learned="JWT tokens need 24h expiry for mobile clients",
)

PROMPT = f"""\
End your work with one report, the last thing you write. It is a block of FIELD:value lines,
one line to a field, with nothing between the lines:

{emit(_EXAMPLE)}

- STATUS is required. It is one of {", ".join(STATUSES)}.
- FILES_CREATED, FILES_MODIFIED and FILES_DELETED list paths, with commas between them.
- TESTS and BUILD are one of {", ".join(OUTCOMES)}. TESTS may add a count, as in pass:12.
- LEARNED is what the next agent should know, ERROR is what went wrong, and QUESTION is what
  someone must decide before you can go on. Each is one line of text.
- Leave out a field that has nothing to say.

Your task may come in the same form, with the fields {", ".join(DISPATCH_FIELDS)}.
"""
"""`parse` reads a report that follows it."""
