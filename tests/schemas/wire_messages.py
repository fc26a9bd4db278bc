"""Messages of the wire format for tests: samples, strategies, and what parsing them gives."""

import pytest
from hypothesis import strategies as st

from schemas import wire
from schemas.wire import Dispatch, Message, Report, WireError, emit
from schemas.wire_values import OUTCOMES, STATUSES

REPORT = """\
STATUS:ok
FILES_CREATED:src/jwt.go,src/jwt_test.go
FILES_MODIFIED:go.mod
TESTS:pass:12
BUILD:pass
LEARNED:JWT tokens need 24h expiry"""

DISPATCH = """\
TASK: Implement JWT auth middleware
CONTEXT: Go backend, chi router
ACCEPTANCE: 1. Middleware validates Bearer tokens  2. Tests pass
SCOPE: src/middleware/
VERIFY: go test ./...
DONE: return STATUS format"""


def parse(text: str) -> Message | None:
    parsed = wire.parse(text)
    return parsed.message if parsed else None


def parse_report(text: str) -> Report | None:
    parsed = wire.parse_report(text)
    return parsed.message if parsed else None


def warned(text: str) -> list[tuple[int, str | None, str]]:
    parsed = wire.parse(text)
    assert parsed is not None
    return [(warning.line, warning.field, warning.message) for warning in parsed.warnings]


def report(text: str) -> Report:
    message = parse(text)
    assert isinstance(message, Report)
    return message


def malformed(text: str) -> WireError:
    with pytest.raises(WireError) as caught:
        parse(text)
    return caught.value


# What emit takes: text that one line carries.

LINE = (
    st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.just("\t"))
    .map(str.strip)
    .filter(bool)
)
PATHS = st.lists(LINE.map(lambda line: line.replace(",", "").strip()).filter(bool)).map(tuple)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]+", fullmatch=True)
TESTS = st.builds(
    wire.Tests,
    outcome=st.sampled_from(OUTCOMES),
    count=st.none() | st.integers(0, 999_999_999),
)


def extras(model: type[Message]) -> st.SearchStrategy[dict[str, str]]:
    taken = {"STATUS", "TASK"} | {name.upper() for name in model.model_fields}
    return st.dictionaries(NAMES.filter(lambda name: name not in taken), LINE | st.just(""))


REPORTS = st.builds(
    Report,
    status=st.sampled_from(STATUSES),
    files_created=PATHS,
    files_modified=PATHS,
    files_deleted=PATHS,
    tests=st.none() | TESTS,
    build=st.none() | st.sampled_from(OUTCOMES),
    learned=st.none() | LINE,
    error=st.none() | LINE,
    question=st.none() | LINE,
    extra=extras(Report),
)
DISPATCHES = st.builds(
    Dispatch,
    task=LINE,
    context=st.none() | LINE,
    acceptance=st.none() | LINE,
    scope=st.none() | LINE,
    verify=st.none() | LINE,
    done=st.none() | LINE,
    extra=extras(Dispatch),
)


def is_carried(message: Message) -> bool:
    """Whether it has no value that reads as another, such as a path named none."""
    try:
        emit(message)
    except WireError:
        return False
    return True


MESSAGES = (REPORTS | DISPATCHES).filter(is_carried)

# Text with the parts that matter in it far more often than chance would put them there.
PARTS = st.sampled_from(
    [
        *("STATUS", "status", "TASK", "TESTS", "FILES_CREATED", "LEARNED", "X_1", "Note", "https"),
        *(":", ": ", ":\t", "ok", "pass:12", "a.py,b.py", ",", "\n", "\r\n", "\r", "\n\n", " "),
        *(
            "**",
            "`",
            "```",
            "> ",
            "- ",
            "1. ",
            "# ",
            "\x1b",
            "\x1b[31m",
            "\x1b]0;",
            "\x07",
            "\x1b\\",
        ),
        *("\x00", "\ud800", "\ufeff", "\u2028", "é"),
    ]
)
MESSY = st.lists(PARTS | st.text(max_size=5), max_size=60).map("".join)
