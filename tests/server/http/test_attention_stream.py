"""GET /events?kind=attention: what waits for an agent, whenever that changes."""

from collections.abc import Iterator
from typing import Any

import pytest

from server.domain.attention.items import Actor
from server.domain.errors import InvalidHeader
from server.http.attention_stream import AttentionState, _may_change, last_state
from server.store.changes import Change
from tests.support.node import RpcError
from tests.support.team import Team

Event = dict[str, Any]
WHO = Actor("aid://example.com/a@1.0.0", {"p1": "r1"})
CHANGE = Change(7, 1, "node", "agent", "m", "contract", "c1", "p1", "agreed")


def test_a_reader_names_the_state_that_it_knows() -> None:
    assert last_state(None, "e") is None
    digest = AttentionState(1, WHO, None, {}).digest
    assert last_state(f"e:7:{digest}", "e") == digest
    assert [last_state(id, "e") for id in (f"other:7:{digest}", "e:7", "7")] == ["", "", ""]
    for malformed in ("", "x", "e:x", "e:7:short", "e:7:" + "g" * 16, "e:7:" + digest + "0"):
        with pytest.raises(InvalidHeader, match="Last-Event-ID"):
            last_state(malformed, "e")


@pytest.mark.parametrize(
    ("change", "concerns"),
    [
        (CHANGE, True),
        (CHANGE._replace(project_id="p2"), False),
        (CHANGE._replace(project_id="p2", entity="repo"), True),
        (CHANGE._replace(project_id=None, entity="message"), True),
        (CHANGE._replace(project_id=None, entity="peer"), False),
    ],
)
def test_only_some_changes_are_worth_a_look(change: Change, concerns: bool) -> None:
    assert _may_change(change, WHO) == concerns


def kinds(event: Event) -> list[str]:
    return [item["kind"] for item in event["data"]["opened"]]


def test_it_says_what_opens_and_closes_and_resumes(team: Team) -> None:
    """A reader that was away learns that its list is another, and only then."""

    def read(stream: Iterator[Event]) -> Event:
        event = next(stream)
        assert event["event"] == "attention"
        return event

    with team.node.events(key=team.key, kind="attention", project=team.project) as stream:
        contract = team.proposed()
        opened = read(stream)
        assert (kinds(opened), opened["data"]["counts"]) == (["respond"], {"respond": 1})
        assert opened["data"]["opened"][0]["next"][0]["params"]["contractId"] == contract
        team.frontend("contract/respond", contractId=contract, action="agree")
        event = read(stream)
        assert event["data"]["closed"] == [opened["data"]["opened"][0]["id"]]
        assert kinds(event) == ["implement"]
    with team.node.events(
        key=team.key, kind="attention", project=team.project, last_event_id=event["id"]
    ) as stream:
        team.backend("context/askQuestion", question="q", urgent=True)
        event = read(stream)
        assert (kinds(event), event["data"]["urgent"]) == (["answer"], 1), "nothing was repeated"
    team.frontend("implementation/complete", contractId=contract)
    with team.node.events(
        key=team.key, kind="attention", project=team.project, last_event_id=event["id"]
    ) as stream:
        event = read(stream)
        assert (event["data"]["restarted"], kinds(event)) == (True, ["answer"])


def test_a_stream_that_is_asked_for_wrongly_is_refused(team: Team) -> None:
    for params, text in (
        ({"kind": "attention,contract"}, "kind: attention can't be combined"),
        ({"kind": "attention", "project": "nowhere"}, "There is no project nowhere"),
        ({"kind": "attention", "after": "x"}, "Last-Event-ID should be"),
    ):
        answer = team.node.get("/events", key=team.key, **params)
        assert answer.status_code in (400, 404), params
        assert text in answer.text
    with pytest.raises(RpcError):
        team.node.call("cacp/attention/list", key=team.key, after="x")
