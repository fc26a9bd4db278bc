"""cacp/context/* (CACP 2.0, Context Methods; design §5)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import AGENT, REPO, RpcError
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

SNIPPET = {
    "language": "python",
    "file": "auth/jwt.py",
    "snippet": "def verify_token(token: str) -> dict: ...",
    "explanation": "JWT verification function for authentication",
}


def share(team: Team, **params: Any) -> str:
    given = {"type": "code_snippet", "content": SNIPPET} | params
    return str(team.backend("context/share", **given)["packetId"])


def ids(packets: list[Any]) -> list[str]:
    return [packet["packet_id"] for packet in packets]


def test_share(team: Team) -> None:
    """CACP 2.0, cacp/context/share and ContextPacket."""
    contract = team.proposed()
    answer = team.backend(
        "context/share", type="code_snippet", content=SNIPPET, relatedContracts=[contract, contract]
    )
    assert answer == {"packetId": answer["packetId"], "status": "shared"}
    [packet] = team.backend("context/list")["packets"]
    assert packet == {
        "packet_id": answer["packetId"],
        "from_repo": team.repo_id(REPO),
        "from_agent": AGENT,
        "timestamp": packet["timestamp"],
        "type": "code_snippet",
        "content": SNIPPET,
        "related_contracts": [contract],
    }
    assert team.backend("project/get")["context_history"] == [packet]


@pytest.mark.parametrize(
    "type_",
    [
        "code_snippet",
        "type_definition",
        "api_spec",
        "error_catalog",
        "env_config",
        "test_case",
        "dependency_info",
        "implementation_status",
        "question",
        "decision",
    ],
)
def test_share_takes_each_context_type(team: Team, type_: str) -> None:
    """CACP 2.0, ContextType."""
    packet = share(team, type=type_)
    assert ids(team.backend("context/list", type=type_)["packets"]) == [packet]


def test_ask_question(team: Team) -> None:
    """CACP 2.0, cacp/context/askQuestion."""
    options = ["JWT tokens", "Session cookies", "OAuth tokens"]
    team.frontend("context/askQuestion", question="JWT?", options=options, urgent=True)
    team.frontend("context/askQuestion", question="Why?")
    asked, bare = team.backend("context/list")["packets"]
    assert (asked["type"], asked["from_agent"]) == ("question", FRONTEND_AGENT)
    assert asked["content"] == {"question": "JWT?", "options": options, "urgent": True}
    assert bare["content"]["urgent"] is False


def test_record_decision(team: Team) -> None:
    """CACP 2.0, cacp/context/recordDecision."""
    decision = {
        "decision": "Authentication method",
        "chosen": "JWT tokens",
        "rationale": "Better for stateless API, works across services",
        "implications": ["Frontend must store token securely"],
    }
    team.backend("context/recordDecision", **decision)
    [packet] = team.backend("context/list")["packets"]
    assert (packet["type"], packet["content"]) == ("decision", decision)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("share", {"type": "gossip", "content": {}}),
        ("share", {"type": "decision", "content": "text"}),
        ("askQuestion", {}),
        ("askQuestion", {"question": "x" * 20_001}),
        ("recordDecision", {"decision": "d", "chosen": "c"}),
    ],
)
def test_bad_params_are_refused(team: Team, method: str, params: dict[str, Any]) -> None:
    with refused(-32602, "invalid_params"):
        team.backend(f"context/{method}", **params)


def test_what_a_packet_refers_to_must_be_in_the_project(team: Team) -> None:
    elsewhere = Team.on(team.node, team.key)
    contract, packet = elsewhere.proposed(), share(elsewhere)
    with refused(-32602, "not_found", kind="contract", contractId=contract):
        share(team, relatedContracts=[contract])
    with refused(-32602, "not_found", kind="packet", packetId=packet):
        share(team, replyTo=packet)
    with refused(-32602, "not_found", kind="packet"):
        team.backend("context/getThread", packetId=packet)


def test_list_by_type_contract_and_time(team: Team) -> None:
    """Design §5: context/list (type, contractId, since, limit)."""
    contract = team.proposed()
    first = share(team)
    second = share(team, type="api_spec", relatedContracts=[contract])
    third = share(team, relatedContracts=[contract])
    packets = team.backend("context/list")["packets"]
    assert ids(packets) == [first, second, third]

    def listed(**params: Any) -> list[str]:
        return ids(team.backend("context/list", **params)["packets"])

    assert listed(type="api_spec") == [second]
    assert listed(contractId=contract) == [second, third]
    assert listed(contractId=contract, type="code_snippet") == [third]
    assert listed(limit=2) == [second, third]
    assert listed(since=packets[0]["timestamp"]) == [second, third]
    assert listed(since=packets[1]["timestamp"], contractId=contract) == [third]
    assert listed(since="2100-01-01T00:00:00") == []
    assert listed(before=third, limit=1) == [second]
    assert listed(before=first) == []
    with pytest.raises(RpcError, match="There is no packet none in the project"):
        listed(before="none")


def test_since_without_an_offset_is_utc(team: Team) -> None:
    packet = share(team)
    at = team.backend("context/list")["packets"][0]["timestamp"]
    before = datetime.fromisoformat(at) - timedelta(microseconds=1)
    for since in (
        before.replace(tzinfo=None).isoformat(),
        before.isoformat().replace("+00:00", "Z"),
    ):
        assert ids(team.backend("context/list", since=since)["packets"]) == [packet]
    with refused(-32602, "invalid_params"):
        team.backend("context/list", since="yesterday")


def test_a_thread_is_the_whole_conversation(team: Team) -> None:
    """Design §5: getThread {packetId} → {thread}."""
    question = team.frontend("context/askQuestion", question="JWT?")["packetId"]
    share(team)
    answer = share(team, replyTo=question)
    more = team.frontend("context/askQuestion", question="Sure?", replyTo=answer)["packetId"]
    aside = team.backend(
        "context/recordDecision", decision="d", chosen="c", rationale="r", replyTo=question
    )["packetId"]
    for start in (question, answer, more, aside):
        thread = team.backend("context/getThread", packetId=start)["thread"]
        assert ids(thread) == [question, answer, more, aside]
    assert thread[1]["reply_to"] == question


def test_a_long_thread(team: Team) -> None:
    packet = first = share(team)
    for _ in range(30):
        packet = share(team, replyTo=packet)
    assert len(team.backend("context/getThread", packetId=first)["thread"]) == 31


def test_each_agent_speaks_for_its_own_repo(team: Team) -> None:
    team.frontend("context/share", type="api_spec", content={})
    [packet] = team.backend("context/list")["packets"]
    assert packet["from_repo"] == team.repo_id(FRONTEND)
