"""`subscriptions/listen`: a client hears that what it reads has changed, and of nothing else."""

from contextlib import closing

import mcp_types as types
import pytest
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from server.mcp_tools.listening import URIS_MAX, _events
from server.store import keys
from tests.support.located import connect
from tests.support.mail_agent import MailAgent
from tests.support.mcp_agent import over_http, run
from tests.support.team import Team


def test_a_client_hears_of_what_it_reads(team: Team, anna: MailAgent, bert: MailAgent) -> None:
    contract = team.proposed()
    project = f"cacp://projects/{team.project}"
    uris = [f"{project}/contracts/{contract}", "acp://inbox", f"{project}/contracts/none"]

    async def play() -> None:
        async with (
            over_http(team.node, bert.key, "auto") as agent,
            agent.client.listen(resource_subscriptions=uris) as heard,
        ):
            events = aiter(heard)
            team.frontend("contract/respond", contractId=contract, action="agree")
            assert await anext(events) == ResourceUpdated(uris[0])
            sent = anna.send(bert)["message"]["id"]
            assert await anext(events) == ResourceUpdated("acp://inbox")
            assert anna.receipts(sent) == {bert.address: "pending"}, "it was not listed"

    run(play)


def test_a_stream_ends_when_its_key_is_revoked(bert: MailAgent) -> None:
    async def play() -> None:
        async with (
            over_http(bert.node, bert.key, "auto") as agent,
            agent.client.listen(
                resources_list_changed=True, resource_subscriptions=["cacp://attention"]
            ) as heard,
        ):
            events = aiter(heard)
            bert.node.call("cacp/project/create", name="N", objective="O", repos=[])
            assert await anext(events) == ResourcesListChanged()
            with closing(connect(bert.node.db)) as db:
                row = db.execute(
                    "SELECT key_id FROM keys WHERE agent_id = ?", (bert.id,)
                ).fetchone()
                keys.revoke(db, row[0], now=1)
            # The stream ends; it would stay open as long as its caller may read.
            assert {event async for event in events} <= {ResourceUpdated("cacp://attention")}

    run(play)


def test_wrong_resources_are_refused() -> None:
    with pytest.raises(MCPError, match="is not a resource"):
        _events(types.SubscriptionFilter(resource_subscriptions=["cacp://nothing"]))
    many = [f"cacp://projects/{number}" for number in range(URIS_MAX + 1)]
    with pytest.raises(MCPError, match="at most 50"):
        _events(types.SubscriptionFilter(resource_subscriptions=many))
    assert _events(types.SubscriptionFilter(tools_list_changed=True)) == []
