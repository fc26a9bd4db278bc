"""No field that a reader sees is lost: the corpus, and mutations of it.

The reader is a few lines that share nothing with the parser: it looks for known names and colons.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import wire
from schemas.wire import Report, WireError
from schemas.wire_values import DONE
from tests.schemas.wire_corpus import CORPUS, Case


def fields(found: wire.ParsedMessage[Report]) -> dict[str, object]:
    shown = wire.to_fields(found.message).items()
    return {name: value for name, value in shown if value not in (None, [])}


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_the_corpus(case: Case) -> None:
    if isinstance(case.fields, int):
        with pytest.raises(WireError) as caught:
            wire.parse_report(case.text)
        assert caught.value.line == case.fields
        return
    found = wire.parse_report(case.text)
    assert found is not None
    assert fields(found) == case.fields
    canonical = wire.emit(found.message)
    again = wire.parse_report(canonical)
    assert again is not None
    assert again.message == found.message


# --- a reader -----------------------------------------------------------------------------------

NAMES = (
    *("STATUS", "FILES_CREATED", "FILES_MODIFIED", "FILES_DELETED", "TESTS", "BUILD"),
    *("LEARNED", "ERROR", "QUESTION"),
)
SEEN = re.compile(
    rf"[\W\d_]*({'|'.join(name.replace('_', '[ _-]') for name in NAMES)})[^\w:：]*([:：|])(.*)",
    re.I,
)

PATH = re.compile(r"[\w./-]+\.\w+")


def seen(text: str) -> list[tuple[str, str]]:
    """The fields that stand in a text, by name and what is behind the colon."""
    found = []
    for line in text.splitlines():
        match = SEEN.fullmatch(line)
        # Only in a row of a table does a bar stand for the colon.
        if match and (match[2] != "|" or "|" in line[: match.start(1)]):
            found.append((re.sub("[ -]", "_", match[1]).upper(), match[3]))
    return found


def letters(text: object) -> str:
    return "".join(char for char in str(text).lower() if char.isalnum())


def read(text: str) -> wire.ParsedMessage[Report] | WireError | None:
    try:
        return wire.parse_report(text)
    except WireError as error:
        return error


def assert_nothing_lost(text: str) -> None:
    """What is read says all that a reader sees behind the last STATUS, or it is refused."""
    found = read(text)
    if isinstance(found, WireError):
        assert found.line in range(1, len(text.splitlines()) + 1)
        return
    visible = seen(text)
    heads = [place for place, (name, _) in enumerate(visible) if name == "STATUS"]
    assert bool(heads) == bool(found)
    if found is None:
        return
    for name, value in visible[heads[-1] :]:
        assert_said(name, value, getattr(found.message, name.lower()))
    latest = dict(visible[heads[0] :])
    failing = {name for name in ("TESTS", "BUILD") if letters(latest.get(name, ""))[:4] == "fail"}
    if found.message.status in DONE:
        assert all(getattr(found.message, name.lower()) is not None for name in failing)


def says_none(value: str) -> bool:
    """Whether a list of files says that there are none, whatever is remarked beside it."""
    return bool(re.match(r"\W*(none|n/?a|no files)\b", value, re.I)) and not PATH.search(value)


def assert_said(name: str, value: str, said: object) -> None:
    if not letters(value) or (name.startswith("FILES") and says_none(value)):
        return
    assert said, f"{name} is lost"
    if name in ("TESTS", "BUILD"):
        word = re.search("pass|fail|skip", value.lower())
        assert word is None or word[0] in str(said)
    elif name.startswith("FILES"):
        for path in PATH.findall(value):
            assert path in str(said)
    elif name != "STATUS":
        assert letters(value) in letters(said)


# --- mutations ----------------------------------------------------------------------------------

JUNK = (
    *("", "   ", "two", "  and more of it", "- an item", "  - deeper", "1. first", "* star"),
    *("notes: lower case", "Note: prose", "https://example.com/a", "```", "~~~text", "---", "===="),
    *(
        "> quoted",
        "| a | b |",
        "|---|---|",
        "X_1: unknown",
        "- API: an item",
        "All tests are fine.",
    ),
    *(
        "TASK: another",
        "Done: all of it",
        "\x1b[32mgreen\x1b[0m",
        "{",
        "}",
        "# Heading",
        "**Bold**",
    ),
)
PREFIXES = (
    "- ",
    "* ",
    "> ",
    "  ",
    "\t",
    "1. ",
    "## ",
    "**",
    "`",
    "_",
    "✅ ",
    "| ",
    "• ",
    "> - ",
    '"',
)
REMARKS = (" (all good)", " - see the log", ", more", ".", " ✅", " `x`", " | and", "**", '"', " 3")
LINES = (
    *("TESTS:fail:3", "BUILD:fail", "Tests: passed", "status: ok", "STATUS:ok", "LEARNED:x"),
    *("**Error:** boom", "FILES_DELETED: a.py, b.py", "tests: n/a", "STATUS: fail"),
)

EDITS = st.sampled_from(
    ["insert", "prefix", "case", "colon", "remark", "twice", "swap", "field", "drop", "blank"]
)
MUTATIONS = st.lists(
    st.tuples(EDITS, st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)), max_size=6
)


def mutate(lines: list[str], edit: str, at: int, pick: int, to: int) -> None:
    if not lines:
        return
    at %= len(lines)
    if edit == "insert":
        lines.insert(at, JUNK[pick % len(JUNK)])
    elif edit == "prefix":
        lines[at] = PREFIXES[pick % len(PREFIXES)] + lines[at]
    elif edit == "case":
        lines[at] = (str.lower, str.upper, str.title)[pick % 3](lines[at])
    elif edit == "colon":
        lines[at] = lines[at].replace(":", (": ", " :", ":\t", "：", ":** ")[pick % 5], 1)
    elif edit == "remark":
        lines[at] += REMARKS[pick % len(REMARKS)]
    elif edit == "twice":
        lines.insert(to % len(lines), lines[at])
    elif edit == "swap":
        lines.insert(to % len(lines), lines.pop(at))
    elif edit == "field":
        lines.insert(at, LINES[pick % len(LINES)])
    elif edit == "drop":
        del lines[at]
    else:
        lines.insert(at, "")


def check_mutation(case: Case, edits: list[tuple[str, int, int, int]], newline: str) -> None:
    lines = case.text.splitlines()
    for edit in edits:
        mutate(lines, *edit)
    assert_nothing_lost(newline.join(lines))


MUTATED = given(st.sampled_from(CORPUS), MUTATIONS, st.sampled_from(["\n", "\r\n"]))


@MUTATED
def test_a_mutated_report_loses_nothing(
    case: Case, edits: list[tuple[str, int, int, int]], newline: str
) -> None:
    check_mutation(case, edits, newline)


@pytest.mark.soak
@settings(max_examples=20_000)
@MUTATED
def test_thousands_of_mutated_reports_lose_nothing(
    case: Case, edits: list[tuple[str, int, int, int]], newline: str
) -> None:
    check_mutation(case, edits, newline)
