"""No loop of the node fails or ends in silence, nor for long."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from server.domain.errors import NodeAway, Unavailable
from server.store.sqlite.connection import unavailable
from server.util.loops import Ended, Loops, Turns, cancel, grouped, run_each, storage_is_away
from tests.cli.run import cacp
from tests.support.located import connect
from tests.support.mail_agent import agent, soon
from tests.support.node import Node
from tests.support.waiting import PATIENCE, eventually


def watched(loop: Callable[[], Turns], until: Callable[[Loops], bool], **how: Any) -> list[Any]:
    """What a loop logs until its supervisor looks as told."""

    async def play() -> None:
        loops = Loops(lambda: 0.0)
        task = loops.start("mine", loop, **how)
        async with asyncio.timeout(PATIENCE):
            while not until(loops):
                await asyncio.sleep(0.001)
        await cancel([task])
        assert loops.failing == [], "who is gone fails no more"

    with capture_logs() as lines:
        asyncio.run(play())
    return [line for line in lines if line.get("loop") == "mine"]


def test_what_raises_is_named_counted_and_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.util.loops.CAP_SECONDS", 0.001)
    causes = iter([ValueError("a"), ValueError("a"), KeyError("b"), None])

    async def loop() -> Turns:
        problem = next(causes)
        if problem is not None:
            raise problem
        yield None
        await asyncio.Event().wait()

    found = watched(loop, lambda of: not of.failing and of.failures["mine"] == 3, peer="p")
    assert [line["event"] for line in found] == ["loop_failed", "loop_failed", "loop_recovered"]
    assert {line["peer"] for line in found} == {"p"}
    assert [repr(line["exc_info"]) for line in found[:2]] == ["ValueError('a')", "KeyError('b')"]


async def _ends() -> Turns:
    yield None


async def _is_left() -> Turns:
    asked = asyncio.create_task(asyncio.sleep(PATIENCE))
    asked.cancel()
    await asked
    yield None


@pytest.mark.parametrize("loop", [_ends, _is_left])
def test_a_loop_that_ends_has_failed(loop: Callable[[], Turns]) -> None:
    found = watched(loop, lambda of: of.failing == ["mine"])
    assert isinstance(found[0]["exc_info"], Ended)


def test_a_loop_may_end_that_is_to() -> None:
    turns: list[int] = []

    async def loop() -> Turns:
        turns.append(1)
        if len(turns) == 1:
            raise ValueError("not yet")
        yield None

    found = watched(loop, lambda of: len(turns) == 2 and not of.failing, ends=True)
    assert [line["event"] for line in found] == ["loop_failed", "loop_recovered"]


def test_what_fails_for_one_item_fails_for_no_other() -> None:
    seen: list[int] = []

    async def act(item: int) -> None:
        seen.append(item)
        if item % 2:
            raise ValueError(item)

    async def play() -> Exception | None:
        assert await run_each([], act) is None
        assert await run_each([2, 4], act) is None
        return await run_each([1, 2, 3, 4], act)

    failed = asyncio.run(play())
    assert seen == [2, 4, 1, 2, 3, 4]
    assert isinstance(failed, ExceptionGroup)
    assert [str(one) for one in failed.exceptions] == ["1", "3"]
    assert grouped([]) is None
    both = grouped([failed, KeyError("k")])
    assert isinstance(both, ExceptionGroup)
    assert len(both.exceptions) == 3


@pytest.mark.parametrize("error", [Unavailable("full", reason="storage_full"), KeyError("stops")])
def test_what_concerns_all_items_ends_the_turn(error: Exception) -> None:
    async def act(item: int) -> None:
        raise error

    with pytest.raises(type(error)):
        asyncio.run(run_each([1, 2], act, stops=(KeyError,)))


def test_a_database_that_is_away_is_told_from_a_row_that_is_wrong() -> None:
    def of(name: str) -> Unavailable:
        cause = sqlite3.OperationalError("x")
        cause.sqlite_errorname = name
        found = unavailable(cause)
        found.__cause__ = cause
        return found

    assert all(map(storage_is_away, map(of, ("SQLITE_FULL", "SQLITE_IOERR_READ", "SQLITE_BUSY"))))
    assert not storage_is_away(of("SQLITE_ERROR"))
    assert not storage_is_away(NodeAway("x", node="n"))
    assert not storage_is_away(ValueError("x"))


def test_a_real_fault_is_shown_until_it_is_mended(tmp_path: Path) -> None:
    """A row that can't be read stops the loop that reads it; the rest of the node goes on."""

    def write(sql: str, *values: object) -> None:
        with closing(connect(node.db)) as other:
            other.execute(sql, values)

    def count() -> str:
        lines = node.get("/metrics").text.splitlines()
        [found] = [
            x for x in lines if x.startswith('cacp_loop_failures_total{loop="mail_sweeper"}')
        ]
        return found.split()[1]

    with Node(tmp_path, log_format="json") as node:
        assert node.get("/health").json()["status"] == "healthy"
        assert count() == "0.0"
        one, two = agent(node), agent(node)
        sent = one.send(two, expires_at=soon(3600))["message"]["id"]
        write("UPDATE messages SET expires_at = '0: no time' WHERE id = ?", sent)
        eventually(lambda: node.get("/health").json()["status"] == "degraded")
        health = node.get("/health").json()
        assert health["reason"] == "loop_failing"
        assert "mail_sweeper" in health["detail"]
        eventually(lambda: float(count()) >= 3)
        shown = cacp("doctor", db=str(node.db), port=str(node.port), agent_id=_agent(node)).stdout
        assert "loop_failing" in shown
        assert "mail_sweeper" in shown
        named = [json.loads(x) for x in node.log.splitlines() if '"loop_failed"' in x]
        assert len(named) == 1, "once, however often it fails"
        assert (named[0]["loop"], "ValueError" in named[0]["exception"]) == ("mail_sweeper", True)
        assert node.call("cacp/project/create", name="n", objective="o")["projectId"]
        write("UPDATE messages SET expires_at = ? WHERE id = ?", soon(3600), sent)
        eventually(lambda: node.get("/health").json()["status"] == "healthy")
        assert "loop_recovered" in node.log


def _agent(node: Node) -> str:
    return str(node.settings["agent_id"])
