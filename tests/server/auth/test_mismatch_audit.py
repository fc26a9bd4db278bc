"""Who calls by one identity and names another is audited (acp-canonical §12.1, §12.8)."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import structlog.testing

from server.auth.mismatch_audit import CALLERS_MAX, MOST, MismatchAudit
from server.store.database import Database
from tests.support.located import connect, location_of, prepare
from tests.support.node import Node, bearer
from tests.support.waiting import eventually

IMPOSTOR = "aid://example.com/impostor@1.0.0"
QUERY = "SELECT actor, action, outcome, detail FROM acp_audit WHERE actor = ? ORDER BY seq"


def test_another_agents_id_beside_a_key_is_audited(tmp_path: Path) -> None:
    """Who tried, as whom and from where; never the key."""
    with Node(tmp_path) as node:
        key = node.key(IMPOSTOR, "mail")
        named = {**bearer(key), "X-Agent-ID": "aid://example.com/victim@1.0.0"}
        for _ in range(MOST.most + 5):
            answer = node.http.get("/peers", headers=named)
            assert answer.status_code == 403
        eventually(lambda: len(node.query(QUERY, IMPOSTOR)) == MOST.most)
        rows = node.query(QUERY, IMPOSTOR)
        assert {row[:3] for row in rows} == {(IMPOSTOR, "identify", "refused")}
        detail = json.loads(rows[0][3])
        assert detail["claimed"] == "aid://example.com/victim@1.0.0"
        assert (detail["reason"], detail["address"]) == ("agent_mismatch", "127.0.0.1")
        assert all(key not in row[3] for row in rows)
        assert key not in node.log
        assert node.stop() == 0
        assert len(node.query(QUERY, IMPOSTOR)) == MOST.most


def test_refused_identities_count_for_the_callers_rate(tmp_path: Path) -> None:
    with Node(tmp_path, rate_limit=5) as node:
        named = {**bearer(node.key(IMPOSTOR, "mail")), "X-Agent-ID": "aid://example.com/victim"}
        statuses = [node.http.get("/peers", headers=named).status_code for _ in range(8)]
        assert statuses == [403] * 5 + [429] * 3


def test_what_is_left_out_is_counted_in_the_next(tmp_path: Path) -> None:
    """A caller fills no disk; an hour later there is room again."""
    details = asyncio.run(noted(tmp_path / "cacp.db"))
    assert len(details) == MOST.most + 2
    assert [one.get("leftOut") for one in details[-2:]] == [None, 3]


def test_callers_who_have_been_quiet_long_are_forgotten(tmp_path: Path) -> None:
    async def note() -> int:
        prepared = prepare(tmp_path / "cacp.db")
        database = Database(location_of(tmp_path / "cacp.db"), "NORMAL")
        await database.open(prepared.last_stamp)
        mismatches = MismatchAudit(database, lambda: 0.0)
        for number in range(CALLERS_MAX + 5):
            mismatches.note(f"caller {number}", None, None, "no")
        await mismatches.stop()
        await database.close()
        return len(mismatches._noted)

    assert asyncio.run(note()) == CALLERS_MAX


def test_what_can_not_be_audited_is_named_and_counted(tmp_path: Path) -> None:
    """By a fault of the node's own too: it is not for the stop to fail by it."""

    async def note() -> tuple[dict[str, int], list[dict[str, Any]]]:
        prepared = prepare(tmp_path / "cacp.db")
        database = Database(location_of(tmp_path / "cacp.db"), "NORMAL")
        await database.open(prepared.last_stamp)
        mismatches = MismatchAudit(database)
        with structlog.testing.capture_logs() as logged:
            mismatches.note(IMPOSTOR, "victim", None, cast(Any, object()))
            await mismatches.stop()
        await database.close()
        return mismatches._left_out, [dict(one) for one in logged if one["log_level"] == "error"]

    left_out, [problem] = asyncio.run(note())
    assert left_out == {IMPOSTOR: 1}
    assert (problem["event"], problem["caller"]) == ("mismatch_not_audited", IMPOSTOR)
    assert isinstance(problem["exc_info"], TypeError)


async def noted(path: Path) -> list[dict[str, Any]]:
    prepared = prepare(path)
    database = Database(location_of(path), "NORMAL")
    await database.open(prepared.last_stamp)
    seconds = 0.0
    mismatches = MismatchAudit(database, lambda: seconds)
    for _ in range(MOST.most + 3):
        mismatches.note(IMPOSTOR, "victim", None, "no")
    mismatches.note("another", "victim", None, "no")
    await mismatches.stop()
    seconds = 3_601.0
    mismatches.note(IMPOSTOR, None, None, "no")
    await mismatches.stop()
    await database.close()
    with closing(connect(path)) as db:
        rows = db.execute("SELECT detail FROM acp_audit ORDER BY seq").fetchall()
    return [json.loads(detail) for (detail,) in rows]
