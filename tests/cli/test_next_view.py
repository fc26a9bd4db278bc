"""What waits, for people: grouped, one line each, and commands that a shell reads as they are."""

import doctest
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import next_view
from cli.call import OPEN, read_params
from cli.next_view import commands, next_text, word

TYPES = {"cacp/contract/respond": {"action": "agree | reject", "comment": "text", "n": "any JSON"}}


def item(kind: str = "respond", urgency: str = "high", **more: Any) -> dict[str, Any]:
    step = {
        "method": "cacp/contract/respond",
        "params": {"contractId": "c1", "version": 2},
        "fill": {"action": "agree or reject", "n.m": "a number"},
    }
    return {
        "kind": kind,
        "urgency": urgency,
        "project": "Coupons",
        "since": "2026-01-01T00:00:00Z",
        "summary": "Respond to `GET \x1b[2J/x` (project `Coupons`): it is new",
        "next": [step],
        **more,
    }


def listing(*items: dict[str, Any], total: int | None = None) -> dict[str, Any]:
    return {"items": [*items], "total": len(items) if total is None else total}


def test_the_examples_hold() -> None:
    assert doctest.testmod(next_view).failed == 0


def test_items_are_grouped_by_urgency() -> None:
    low, urgent = item(urgency="low"), item(urgency="urgent")
    lines = next_text(listing(low, urgent, low, total=5), TYPES, None).plain.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads == [
        "Urgent (1)",
        "Low (2)",
        "2 more: cacp next --limit 5",
    ]
    assert " d " in lines[1]
    assert lines[1].endswith("  Coupons  Respond to GET /x: it is new")
    assert lines[2] == (
        "    cacp call cacp/contract/respond contractId=c1 version:=2 action=… n:=…"
    )
    assert lines[3:5] == ["      action: agree or reject", "      n.m: a number"]


def test_a_line_fits_and_a_command_is_whole() -> None:
    lines = next_text(listing(item()), TYPES, 40).plain.splitlines()
    assert len(lines[1]) == 40
    assert len(lines[2]) > 40


@pytest.mark.parametrize(
    ("kind", "step", "command"),
    [
        ("mail", {"method": "acp/inbox", "params": {}}, "cacp inbox"),
        (
            "approve",
            {"method": "acp/approve", "params": {"message_id": "m1"}, "fill": {"decision": "d"}},
            "cacp approve m1",
        ),
        ("verify", {"method": "unknown/x", "params": {}}, "cacp call unknown/x"),
    ],
)
def test_the_better_command_is_shown(kind: str, step: dict[str, Any], command: str) -> None:
    assert [*commands(item(kind, next=[step]), TYPES)] == [command]


def test_a_command_controls_no_terminal() -> None:
    assert word("name", "a\x1b[2J\u202e\nb") == r"""name:='"a\u001b[2J\u202e\nb"'"""


@given(
    st.dictionaries(
        st.from_regex("[a-z]+", fullmatch=True),
        st.text(st.characters(exclude_categories=["Cs"]))
        | st.integers()
        | st.lists(st.text(max_size=3)),
    )
)
def test_a_shell_and_cacp_call_read_a_command_as_it_was_meant(params: dict[str, Any]) -> None:
    line = " ".join(word(name, value) for name, value in params.items())
    if OPEN not in params.values():
        assert read_params(shlex.split(line)) == params


def test_a_check_is_a_command_of_its_own() -> None:
    """Which finds out the params that the step leaves open."""
    params = {"handoff_id": "h-1", "package_hash": "0" * 64}
    step = {"method": "acp/handoff/check", "params": params, "fill": {"commands": "how it ended"}}
    waiting = item("handoff", next=[step])
    assert list(commands(waiting, {})) == ["cacp handoff check h-1"]
    assert list(next_view.hints(waiting)) == []
