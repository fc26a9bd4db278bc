"""Text from agents is data: it says who wrote it, can't end where it stands, and hides nothing."""

import doctest
import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain import untrusted
from server.domain.untrusted import Author, block, block_of_json, inbox, inline, text_of
from tests.server.domain.injections import ATTEMPTS

WRITER = Author("aid://evil.example/agent@1.0.0", "evil-repo", "verified")
HOSTILE = st.text(
    st.sampled_from(list("`~|#>-=<!&[]() \t\n\r\x1b\x07\x85\x9b\u2028\u200b\u202e\U000e0041a1;m\\"))
    | st.characters()
) | st.sampled_from(list(ATTEMPTS.values()))

attempts = pytest.mark.parametrize("text", ATTEMPTS.values(), ids=ATTEMPTS.keys())


def test_the_examples_hold() -> None:
    assert doctest.testmod(untrusted).failed == 0


def fenced(markdown: str) -> tuple[list[str], list[str]]:
    """The lines outside fences and those inside, as CommonMark §4.5 tells them apart."""
    outside: list[str] = []
    inside: list[str] = []
    fence: str | None = None
    for line in re.split("\r\n|\r|\n", markdown):
        if fence is None:
            opening = re.match(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})", line)
            fence = opening[1] if opening else None
            outside.append(line)
        elif re.fullmatch(rf" {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*", line):
            fence = None
            outside.append(line)
        else:
            inside.append(line)
    assert fence is None, "a fence was left open"
    return outside, inside


def steers(text: str) -> list[str]:
    """What in a text is not there to be read."""
    return [
        f"U+{ord(each):04X}"
        for each in text
        if (unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} and each not in "\t\n")
        or unicodedata.bidirectional(each) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI"}
        or unicodedata.bidirectional(each) in {"FSI", "PDI", "BN"}
        or 0xE0000 <= ord(each) <= 0xE0FFF
    ]


@attempts
def test_no_attempt_gets_out_of_its_block(text: str) -> None:
    outside, inside = fenced(block(text, WRITER))
    assert outside == [untrusted.label(WRITER), "```untrusted", "```"]
    assert all(line.startswith("| ") for line in inside)


@attempts
def test_no_attempt_gets_out_of_its_span(text: str) -> None:
    span = inline(text)
    assert re.fullmatch("`[^`\n\r]+`", span)
    assert steers(span) == []


@given(HOSTILE)
def test_a_block_holds_whatever_is_in_it(text: str) -> None:
    rendered = block(text, WRITER)
    outside, inside = fenced(rendered)
    assert outside == [untrusted.label(WRITER), "```untrusted", "```"]
    assert inside == [f"| {line}" for line in text_of(rendered).split("\n")]
    assert steers(rendered) == []


@given(HOSTILE, st.integers(2, 200))
def test_a_span_is_one_short_line(text: str, width: int) -> None:
    span = inline(text, width)
    assert re.fullmatch("`[^`\n\r]+`", span)
    assert len(span) <= width + 2
    assert steers(span) == []


@given(HOSTILE, HOSTILE, HOSTILE)
def test_a_label_is_one_line_whoever_writes(agent: str, node: str, trust: str) -> None:
    line = untrusted.label(Author(agent, node, trust))
    assert "\n" not in line
    assert steers(line) == []
    assert line.startswith("Data by `")


@given(st.recursive(HOSTILE | st.integers() | st.none(), st.lists, max_leaves=5))
def test_json_in_a_block_reads_back_the_same(value: object) -> None:
    rendered = block_of_json(value, WRITER)
    assert json.loads(text_of(rendered)) == value
    assert steers(rendered) == []


def test_text_that_harms_nobody_stays_as_it_is() -> None:
    text = "def f(x: int) -> str:\n\treturn '漢字 é 😀 שלום'\n"
    assert text_of(block(text, WRITER)) == text


def envelope(**members: Any) -> dict[str, Any]:
    return {
        "id": "0198c0de-0000-7000-8000-000000000001",
        "type": "status.update",
        "priority": "normal",
        "status": "delivered",
        "created_at": "2026-02-21T09:30:00.000000+00:00",
        "payload": {"summary": "Done"},
    } | members


def test_an_inbox_tells_of_each_message() -> None:
    shown = inbox([envelope(topic="Profiles"), envelope(type="status.blocked")], [WRITER, WRITER])
    assert "# Inbox: 2 messages" in shown
    assert "## 1. `status.update` from `aid://evil.example/agent@1.0.0`" in shown
    assert "- topic: `Profiles`" in shown
    assert '| {\n|  "summary": "Done"\n| }' in shown
    assert "(node `evil-repo`, trust `verified`)" in shown


def test_an_empty_inbox_says_so() -> None:
    assert inbox([], []) == "No messages wait for you."


@attempts
def test_no_message_passes_for_more_than_one(text: str) -> None:
    message = envelope(
        topic=text,
        thread_id=text,
        payload={"summary": text, text: text},
        context={"artifacts": [{"type": "file", "path": text}]},
    )
    outside, _ = fenced(inbox([message], [Author(text, text, text)]))
    plain, _ = fenced(
        inbox(
            [envelope(topic="x", thread_id="x", context={"artifacts": [1]})],
            [Author("x", "x", "x")],
        )
    )
    spans = [re.sub("`[^`]*`", "`x`", line) for line in outside]
    assert spans == [re.sub("`[^`]*`", "`x`", line) for line in plain]
