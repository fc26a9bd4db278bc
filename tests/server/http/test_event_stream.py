"""GET /events: every change, resumable (design §3, §6)."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import server.methods
from server.auth.authenticator import Caller
from server.domain.errors import Forbidden, InvalidInput, Unauthenticated
from server.http import event_stream
from server.http.event_stream import KINDS, Filter, event, kinds_of, start_of
from server.store import keys
from server.store.changes import Change
from server.store.database import Database
from tests.support.located import connect, location_of, prepare
from tests.support.node import AGENT, Node
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team
from tests.support.waiting import eventually

CHANGE = Change(7, 1_000_000, "node", "agent", "cacp/x/y", "contract", "c1", "p1", "agreed")


# --- which changes, and from where on -----------------------------------------------------------


def caller(project: str | None = None, *, human: bool = False) -> Caller:
    only = None if project is None else frozenset({project})
    return Caller("agent", "repo", "verified", "key", only, human)


@pytest.mark.parametrize(
    ("filter", "taken"),
    [
        (Filter(None, None, caller()), True),
        (Filter("p1", None, caller()), True),
        (Filter("p2", None, caller()), False),
        (Filter(None, frozenset({"contract", "project"}), caller()), True),
        (Filter(None, frozenset({"project"}), caller()), False),
        (Filter(None, None, caller("p1")), True),
        (Filter(None, None, caller("p2")), False),
        (Filter("p1", None, caller("p2")), False),
    ],
)
def test_a_stream_carries_what_was_asked_for_and_may_be_read(filter: Filter, taken: bool) -> None:
    """Design §6: streams show a caller only what it may read."""
    assert filter.takes(CHANGE) is taken


def test_a_change_of_no_project_is_not_for_who_may_read_one() -> None:
    assert not Filter(None, None, caller("p1")).takes(CHANGE._replace(project_id=None))


def test_a_stream_starts_now_or_where_it_was_left() -> None:
    assert start_of(None, "e", 12) == 12
    assert start_of("e:7", "e", 12) == 7
    assert start_of("7", "e", 12) == 7


def test_an_id_beyond_the_newest_starts_now() -> None:
    assert start_of("e:13", "e", 12) == 12


def test_kinds_are_those_of_changes() -> None:
    assert kinds_of(None, caller()) is kinds_of("", caller()) is None
    assert kinds_of("contract,context", caller()) == frozenset({"contract", "context"})
    with pytest.raises(
        InvalidInput,
        match=r"^kind: 'contracts' is unknown.*context, contract.* and attention or mail",
    ):
        kinds_of("context,contracts", caller())
    with pytest.raises(InvalidInput, match=r"^kind: mail can't be combined"):
        kinds_of("context,mail", caller())


def test_what_happens_to_messages_is_for_humans() -> None:
    """acp-canonical §10.2: human audit visibility."""
    with pytest.raises(Forbidden, match="kind=mail"):
        kinds_of("message", caller())
    human = caller(human=True)
    assert kinds_of("message,project", human) == frozenset({"message", "project"})


def test_every_entity_that_a_method_records_is_a_kind() -> None:
    methods = Path(server.methods.__file__).parent.rglob("*.py")
    recorded = {
        name
        for path in methods
        for name in re.findall(r"ctx\.record\(\s*\"(\w+)\"", path.read_text())
    }
    # Mail, handoffs and teams are their parties' business: the stream of changes carries none. Nor
    # does it carry the keys of agents, and the runs, which report every second.
    assert recorded - {"handoff", "message", "teamspace", "agent", "run"} == KINDS


def test_an_id_of_another_epoch_starts_at_the_beginning() -> None:
    """Design §3: nobody's cursor skips what a restored node writes anew."""
    assert start_of("other:7", "e", 12) == 0


@pytest.mark.parametrize("id", ["", "x", "e:", "e:-1", "e:x", "-1", "٣", "1" * 19])
def test_what_is_no_event_id_is_refused(id: str) -> None:
    with pytest.raises(InvalidInput, match="Last-Event-ID"):
        start_of(id, "e", 12)


def test_an_event_is_named_after_its_entity_and_its_id_says_where_to_resume() -> None:
    lines = event(CHANGE, "e").encode().decode().splitlines()
    assert "id: e:7" in lines
    assert "event: contract" in lines


# --- the stream ---------------------------------------------------------------------------------


def outcomes(events: Iterator[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    found = (next(events)["data"] for _ in range(count))
    return [(one["action"], one["outcome"]) for one in found]


def test_every_change_is_sent_as_it_is_committed(team: Team) -> None:
    with team.node.events(project=team.project) as events:
        contract = team.agreed()
        first = next(events)
        assert first["event"] == "contract"
        assert first["id"].endswith(f":{first['data']['seq']}")
        assert first["data"] == {
            "seq": first["data"]["seq"],
            "at": team.contract(contract)["created_at"],
            "origin": AGENT,
            "actor": AGENT,
            "action": "cacp/contract/propose",
            "entity": "contract",
            "entityId": contract,
            "projectId": team.project,
            "outcome": "proposed",
        }
        assert outcomes(events, 1) == [("cacp/contract/respond", "agreed")]


def test_a_stream_goes_on_after_last_event_id(team: Team) -> None:
    with team.node.events(project=team.project) as events:
        contract = team.proposed()
        last = next(events)["id"]
    team.frontend("contract/respond", contractId=contract, action="request_change")
    team.backend("contract/update", contractId=contract, content={})
    with team.node.events(project=team.project, last_event_id=last) as events:
        assert outcomes(events, 2) == [
            ("cacp/contract/respond", "negotiating"),
            ("cacp/contract/update", "proposed"),
        ]
        team.frontend("contract/respond", contractId=contract, action="agree")
        assert outcomes(events, 1) == [("cacp/contract/respond", "agreed")]
    with team.node.events(project=team.project, after=last) as events:
        assert outcomes(events, 1) == [("cacp/contract/respond", "negotiating")]


def test_a_stream_goes_on_across_a_crash(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        team = Team.on(node, node.key("aid://example.com/frontend@1.0.0", "frontend-app"))
        with node.events(after="0") as events:
            assert outcomes(events, 1) == [("cacp/project/create", "created")]
            last = next(events)["id"]
        contract = team.proposed()
        node.kill()
        node.restart()
        with node.events(last_event_id=last) as events:
            assert next(events)["data"]["entityId"] == contract


def test_more_changes_than_a_page(team: Team) -> None:
    with team.node.events(project=team.project) as events:
        start = team.proposed()
        last = next(events)["id"]
        assert start
    for _ in range(250):
        team.backend("project/updateStatus", status="planning")
    with team.node.events(project=team.project, last_event_id=last) as events:
        sequence = [next(events)["data"]["seq"] for _ in range(250)]
    assert sequence == sorted(set(sequence))


def test_a_stream_may_be_of_some_kinds(team: Team) -> None:
    with team.node.events(project=team.project, kind="context,repo") as events:
        team.proposed()
        team.backend("context/askQuestion", question="JWT?")
        team.backend("project/addRepo", repo={"name": "x", "role": "r", "language": "l"})
        assert [next(events)["event"], next(events)["event"]] == ["context", "repo"]


def test_a_token_shows_its_project_only(team: Team) -> None:
    """Design §6: streams show a caller only what it may read."""
    other = Team.on(team.node, team.key)
    with team.node.events(token=team.token()) as events:
        other.proposed()
        contract = team.proposed()
        assert next(events)["data"]["entityId"] == contract


def test_streams_are_independent(team: Team) -> None:
    other = Team.on(team.node, team.key)
    client = httpx.Client(base_url=team.node.url, trust_env=False)
    with client, team.node.events(project=team.project) as mine:
        other.proposed()
        contract = team.proposed()
        assert next(mine)["data"]["entityId"] == contract


def test_a_stream_opens_with_how_soon_to_come_back(node: Node) -> None:
    with node.http.stream("GET", "/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in response.headers["cache-control"]
        head = [line for line, _ in zip(response.iter_lines(), range(2), strict=False)]
    assert "retry: 5000" in head


def test_a_bad_last_event_id_is_refused(node: Node) -> None:
    response = node.http.get("/events", headers={"last-event-id": "nonsense"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("params", "status", "reason"),
    [
        ({"kind": "contract,contracts"}, 400, "invalid_params"),
        ({"project": "nothing"}, 404, "not_found"),
    ],
)
def test_what_there_is_not_is_refused(
    node: Node, params: dict[str, str], status: int, reason: str
) -> None:
    response = node.get("/events", **params)
    assert response.status_code == status
    assert response.json()["error"]["data"]["reason"] == reason


def test_a_project_that_the_token_forbids_is_refused(team: Team) -> None:
    other = Team.on(team.node, team.key)
    for project in (other.project, "nothing"):
        response = team.node.http.get(
            "/events", params={"project": project}, headers={"x-project-token": team.token()}
        )
        assert response.status_code == 403
        assert response.json()["error"]["data"]["reason"] == "other_project"


def test_a_stream_ends_when_its_key_is_revoked(team: Team) -> None:
    key = team.node.key("aid://example.com/leaver@1.0.0", "leaver")
    with team.node.events(key=key, project=team.project) as events:
        team.proposed()
        assert next(events)
        revoke(team.node, "aid://example.com/leaver@1.0.0")
        team.proposed()
        assert list(events) == []
    assert team.node.get("/events", key=key).status_code == 401
    assert '"stream_ended"' in team.node.log


def test_a_quiet_stream_looks_again_whether_it_may_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token expires, and a key is revoked by `cacp`, without a change that would wake it."""
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.05)
    checks = 0

    async def recheck_access() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise Unauthenticated("The project token has expired")

    async def listen() -> None:
        database = Database(location_of(tmp_path / "cacp.db"))
        prepared = prepare(tmp_path / "cacp.db")
        await database.open(prepared.last_stamp)
        everything = Filter(None, None, caller())
        try:
            async for _ in event_stream.stream(
                database, prepared.epoch, 0, everything, recheck_access, anyio.Event()
            ):
                raise AssertionError("nothing has changed")
        finally:
            await database.close()

    with pytest.raises(Unauthenticated):
        asyncio.run(listen())


def revoke(node: Node, agent: str) -> None:
    with closing(connect(node.db)) as db:
        [key_id] = [key.key_id for key in keys.every(db) if key.agent_id == agent]
        assert keys.revoke(db, key_id, now=time.time_ns() // 1000)


def test_streams_are_limited(tmp_path: Path) -> None:
    def status() -> int:
        with node.http.stream("GET", "/events") as response:
            return response.status_code

    with Node(tmp_path, event_streams=1) as node:
        with node.events():
            response = node.get("/events")
            assert response.status_code == 429
            assert response.headers["retry-after"] == "5"
            assert response.json()["error"]["code"] == -32005
        # The node hears of the end of a stream a moment after it.
        eventually(lambda: status() == 200)


def test_one_caller_takes_no_stream_from_others(tmp_path: Path) -> None:
    with Node(tmp_path, event_streams=3, event_streams_per_caller=2) as node:
        other = node.key(FRONTEND_AGENT, FRONTEND)
        with node.events(), node.events():
            refused = node.get("/events")
            assert refused.status_code == 429
            assert refused.json()["error"]["message"].startswith("You have 2 open event streams")
            with node.events(key=other):
                refused = node.get("/events", key=other)
                assert "The node has 3 open event streams" in refused.json()["error"]["message"]


@pytest.mark.sqlite
def test_an_open_stream_does_not_keep_the_node_from_stopping(tmp_path: Path) -> None:
    with Node(tmp_path) as node, node.events() as events:
        node.stop()
        assert list(events) == []
        logged = [json.loads(line)["event"] for line in node.log.splitlines()]
        assert logged == ["operator_key_made", "ready", "stopped"]
