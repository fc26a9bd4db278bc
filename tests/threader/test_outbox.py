"""Reports on disk, and what becomes of each."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from threader.outbox import Fate, Outbox, fate, outbox_summary
from threader.reports import NodeCall


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, Fate.DELIVERED),
        ({"code": -32001}, Fate.ALL_WAIT),
        ({"code": -32005}, Fate.ALL_WAIT),
        ({"code": -32003}, Fate.WAITS),
        ({"code": -32000, "data": {"reason": "away"}}, Fate.WAITS),
        ({"code": -32602, "data": {"reason": "not_found"}}, Fate.WAITS),
        ({"code": -32602, "data": {"reason": "illegal_transition", "from": "agreed"}}, Fate.WAITS),
        (
            {"code": -32602, "data": {"reason": "illegal_transition", "from": "verified"}},
            Fate.REFUSED,
        ),
        ({"code": -32602, "data": {"reason": "invalid_params"}}, Fate.REFUSED),
        ({"code": -32601}, Fate.REFUSED),
        ("no", Fate.REFUSED),
    ],
)
def test_what_an_answer_means(error: Any, expected: Fate) -> None:
    assert fate(error) is expected


def test_it_survives_a_torn_line(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    assert outbox.put([NodeCall("a", "m", {}), NodeCall("b", "m", {"x": 1})])
    assert not outbox.put([NodeCall("a", "m", {})])
    outbox.settle("a")
    for name in ("outbox.jsonl", "outbox.settled.jsonl"):
        with (tmp_path / name).open("ab") as file:
            file.write(b'{"key": "torn')
    again = Outbox(tmp_path)
    assert again.pending() == [NodeCall("b", "m", {"x": 1})]
    assert again.put([NodeCall("c", "m", {})])
    assert list(Outbox(tmp_path).calls) == ["a", "b", "c"]


def test_problems_have_names_and_end(tmp_path: Path) -> None:
    assert outbox_summary(tmp_path) is None
    outbox = Outbox(tmp_path)
    outbox.put([NodeCall(key, "m", {}) for key in "abc"])
    outbox.wait("a", "m: too early")
    assert outbox_summary(tmp_path) == {
        "delivered": 0, "waiting": 3, "refused": 0, "problems": ["1 reports wait: m: too early"],
    }  # fmt: skip
    outbox.all_wait("the node rejects the key (HTTP 401)")
    told = Outbox(tmp_path).summary()["problems"]
    assert told == ["3 reports wait: the node rejects the key (HTTP 401)"]
    outbox.settle("a")
    outbox.settle("b", {"message": "nonsense"})
    outbox.settle("c")
    assert Outbox(tmp_path).summary() == {
        "delivered": 2, "waiting": 0, "refused": 1,
        "problems": ["1 reports were finally refused: nonsense"],
    }  # fmt: skip


def test_the_outbox_of_an_older_runner_is_read(tmp_path: Path) -> None:
    calls = [{"key": key, "method": "m", "params": {}} for key in "abc"]
    lines = b"".join(orjson.dumps(call) + b"\n" for call in calls)
    (tmp_path / "outbox.jsonl").write_bytes(lines)
    (tmp_path / "outbox.delivered").write_text("2")
    assert [call.key for call in Outbox(tmp_path).pending()] == ["c"]


def test_to_look_while_a_run_writes_changes_nothing(tmp_path: Path) -> None:
    """`status` may see half a line; the run that writes the other half must find the first."""
    outbox = Outbox(tmp_path)
    outbox.put([NodeCall("a", "m", {})])
    path = tmp_path / "outbox.jsonl"
    with path.open("ab") as running:
        running.write(b'{"key":"b","meth')
        running.flush()
        assert outbox_summary(tmp_path) == {
            "delivered": 0, "waiting": 1, "refused": 0, "problems": [],
        }  # fmt: skip
        running.write(b'od":"m","params":{}}\n')
    assert list(Outbox(tmp_path).calls) == ["a", "b"]
