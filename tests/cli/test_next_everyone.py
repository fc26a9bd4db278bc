"""What is open between all agents, as a table."""

import doctest
from typing import Any

from cli import next_everyone
from cli.next_everyone import must_act, rows, summary


def item(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "verb": "respond to",
        "mark": "too long",
        "project": "shop",
        "subject": {"type": "contract", "id": "c", "name": "login\x1b[31m"},
        "version": 2,
        "mustAct": [{"repo": f"r{number}"} for number in range(4)],
        "mustActCount": 12,
        "anyOf": False,
        "unblocks": 3,
        "since": "2020-01-01T00:00:00+00:00",
    }
    return made | changes


def test_the_examples_hold() -> None:
    assert doctest.testmod(next_everyone).failed == 0


def test_a_row_holds_no_control_characters() -> None:
    [row] = rows([item()])
    assert row[:5] == ("too long", "respond to login v2", "shop", "r0, r1, r2 and 9 more", "3")
    [row] = rows([item(mark="agent away", unblocks=0)])
    assert (row[0], row[4]) == ("agent away", "-")


def test_what_the_key_may_not_see_is_counted() -> None:
    groups = {"person": 2, "overdue": 1, "in_time": 0}
    line = summary({"groups": groups, "hidden": 4})
    assert line.startswith("2 need a person, 1 waited too long")
    assert line.endswith("; 4 of mail and approvals are for a human's key")
    assert must_act(item(mustAct=[], mustActCount=0)) == "a person"
