"""acp/subscribe, acp/unsubscribe and acp/channels (acp-canonical §10; design §6)."""

from dataclasses import replace

import pytest

from server.domain.errors import Forbidden
from server.methods.acp import channels
from tests.server.methods.acp.office import BERT, Office
from tests.server.methods.refusals import refused
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, RpcError, bearer
from tests.support.pushing_node import PushingNode


@pytest.fixture
def post_office(pushing: PushingNode) -> PushingNode:
    return pushing


@pytest.mark.parametrize(
    ("url", "code", "reason"),
    [
        ("ftp://bert.example", -32602, "invalid_endpoint"),
        ("http://user@bert.example", -32602, "invalid_endpoint"),
        ("http://169.254.169.254/latest", -32003, "refused_address"),
        ("http://10.0.0.7/mail", -32003, "private_address"),
        ("http://[::ffff:192.168.1.1]/", -32003, "private_address"),
    ],
)
def test_a_webhook_may_not_be_anywhere(bert: MailAgent, url: str, code: int, reason: str) -> None:
    with refused(code, reason):
        bert.call("subscribe", url=url)
    assert bert.call("unsubscribe") == {"removed": False}


def test_loopback_is_for_nodes_on_loopback_and_private_networks_for_a_setting(
    office: Office,
) -> None:
    context = office.context(BERT)
    with pytest.raises(Forbidden, match="private network"):
        channels._check_url(context, "http://10.0.0.7/")
    context.node = replace(
        context.node, loopback=False, acp=replace(context.node.acp, private_webhooks=True)
    )
    channels._check_url(context, "http://10.0.0.7/")
    with pytest.raises(Forbidden, match="loopback"):
        channels._check_url(context, "http://127.0.0.1/")


def test_the_secret_is_not_kept_for_a_retry(pushing: PushingNode, bert: MailAgent) -> None:
    """An idempotent call's answer would be."""
    body = (
        '{"jsonrpc": "2.0", "method": "acp/subscribe", "id": 1,'
        ' "params": {"url": "http://bert.example/mail"}}'
    )
    headers = bearer(bert.key) | {"idempotency-key": "once"}
    secrets = {pushing.raw(body, headers).json()["result"]["secret"] for _ in range(2)}
    assert len(secrets) == 2
    assert all(b"whsec_" not in file.read_bytes() for file in pushing.folder.glob("node.db*"))


def test_channels_tell_what_reaches_the_caller(pushing: PushingNode, bert: MailAgent) -> None:
    found = {one["channel"]: one for one in bert.call("channels")["channels"]}
    assert [one["state"] for one in found.values()] == ["available"] * 4
    assert [found[one]["configured"] for one in ("inbox", "session", "channel", "wake")] == [
        True,
        True,
        False,
        False,
    ]
    agent(pushing, "anna").send(bert)
    waiting = {one["channel"]: one["waiting"] for one in bert.call("channels")["channels"]}
    assert waiting["session"] == 1
    assert (
        pushing.agent_with_wake_command("wakes").call("channels")["channels"][3]["configured"]
        is True
    )


def test_there_is_no_webhook_while_the_channel_is_off(node: Node) -> None:
    one = agent(node)
    with pytest.raises(RpcError) as error:
        one.call("subscribe", url="http://bert.example/mail")
    assert error.value.data["reason"] == "channel_disabled"
    assert error.value.data["capability"] == "disabled"
    assert {state["state"] for state in one.call("channels")["channels"]} == {
        "available",
        "disabled",
    }
