"""What was done with a contract, in words."""

from typing import Any

import pytest

from server.domain.story import DEEDS, packet_deed, step_deed


def entry(step: str, **more: Any) -> dict[str, Any]:
    return {"step": step, "version": 2, **more}


@pytest.mark.parametrize("step", DEEDS)
def test_every_step_is_a_sentence(step: str) -> None:
    assert "{" not in step_deed(entry(step)).did


def test_a_step_names_its_version_and_its_later_rounds() -> None:
    assert step_deed(entry("agreed", note="fine")) == ("agrees to version 2", "fine")
    assert step_deed(entry("completed", round=2, note="done", details=["a.py", "b.py"])) == (
        "has implemented it (round 2)",
        "done: a.py, b.py",
    )
    breaks = step_deed(entry("updated", effect="breaking")).did
    assert breaks == "writes version 2, which breaks consumers"
    assert step_deed(entry("updated", effect="compatible")).did == "writes version 2"
    assert step_deed(entry("failed", round=1, details={"case": 1})).why == '{"case": 1}'


@pytest.mark.parametrize(
    ("type", "content", "more", "deed"),
    [
        ("question", {"question": "Why?", "options": ["a", "b"]}, {}, ("asks", "Why? (a / b)")),
        ("question", {"question": "Why?", "urgent": True}, {}, ("asks urgently", "Why?")),
        ("decision", {"decision": "d", "chosen": "c", "rationale": "r"}, {},
         ("decides", "d: c, because r")),
        ("decision", {"answer": "yes"}, {}, ("decides", "yes")),
        ("code_snippet", {"a": 1}, {}, ("shares code snippet", '{"a": 1}')),
        ("test_case", {"text": "t"}, {"reply_to": "p"}, ("answers", "t")),
    ],
)  # fmt: skip
def test_a_packet(type: str, content: Any, more: Any, deed: tuple[str, str]) -> None:
    assert packet_deed({"type": type, "content": content, **more}) == deed
