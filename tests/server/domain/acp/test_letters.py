"""What is checked of a message that another node brings (acp-canonical §4.1, §12.2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.acp_mesh import Letter
from schemas.base import iso
from server.domain.acp import letters
from server.domain.errors import Forbidden, InvalidInput

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
POLICY = {"visibility": "private", "sensitivity": "low", "human_gate": "none"}


def id_at(stamp: int) -> str:
    text = f"{stamp // 1000:012x}"
    return f"{text[:8]}-{text[8:]}-7000-8000-000000000000"


def letter(**message: Any) -> Letter:
    whole = {
        "id": id_at(NOW),
        "protocol": "acp",
        "version": "1.0.0",
        "from": "bob",
        "to": ["ann"],
        "type": "knowledge.push",
        "priority": "normal",
        "status": "pending",
        "payload": {},
        "policy": POLICY,
        "created_at": iso(NOW),
    }
    return Letter.model_validate({"message": whole | message, "hop": 0, "recipients": ["ann"]})


def check(given: Letter) -> None:
    letters.check(given, NOW, 5 * MINUTE)


def test_what_a_node_of_ours_lets_out_is_good() -> None:
    check(letter())
    check(letter(to=["*"], priority="normal"))
    check(letter(to=["ann@1", "carl", "ann"]))


@pytest.mark.parametrize(
    "change",
    [
        {"id": id_at(NOW - 2 * DAY)},
        {"created_at": iso(NOW + 6 * MINUTE)},
        {"to": ["carl"]},
        {"to": ["*", "ann"]},
        {"policy": POLICY | {"visibility": "team"}},
        {"to": ["*"], "policy": POLICY | {"sensitivity": "high"}},
    ],
)
def test_what_none_lets_out_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, Forbidden)):
        check(letter(**change))


@given(st.integers(0, 200), st.integers(-10, 10))
def test_a_message_is_over_once_it_expired_or_is_older_than_is_kept(age: int, left: int) -> None:
    found = letter(created_at=iso(NOW - age * DAY), expires_at=iso(NOW + left * MINUTE))
    assert letters.is_over(found, NOW, 90 * DAY) == (age > 90 or left <= 0)
