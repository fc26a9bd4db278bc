"""A claim that lost a race."""

from dataclasses import replace

from server.domain.attention.claims import FreeRepoSubject, LostClaimSubject, topic_of
from server.domain.attention.derive import attention
from server.domain.attention.items import Actor
from tests.server.domain.attention.subjects import NAMES, PROJECT
from tests.server.domain.histories import API, IOS

LOST = LostClaimSubject(NAMES, "web", API.agent_id, IOS.agent_id, 7, has_written=False)
LOSER = Actor(API.agent_id, {})


FREE = FreeRepoSubject(NAMES, "web", "sign in", 7)


def test_a_free_repo_waits_until_the_agent_is_a_member() -> None:
    [item] = attention([FREE], LOSER)
    [step] = item.next
    assert (step.tool, step.method) == ("cacp_project_join", "cacp/project/join")
    assert step.params == {"projectId": PROJECT, "repoName": NAMES.repo("web")}
    assert attention([FREE], Actor(API.agent_id, {PROJECT: "web"})) == []


def test_it_waits_for_its_loser_until_it_has_written_to_the_holder() -> None:
    [item] = attention([LOST], LOSER)
    [step] = item.next
    assert (step.tool, step.params["to"]) == ("acp_send", ["aid://example.com/ios"])
    assert step.params["topic"] == topic_of(PROJECT, "web")
    assert attention([replace(LOST, has_written=True)], LOSER) == []


def test_it_does_not_wait_for_others_or_for_a_member() -> None:
    assert attention([LOST], Actor(IOS.agent_id, {PROJECT: "web"})) == []
    assert attention([LOST], Actor(API.agent_id, {PROJECT: "api"})) == []


def test_another_holder_makes_it_another_item() -> None:
    [first] = attention([LOST], LOSER)
    [second] = attention([replace(LOST, holder="aid://example.com/other")], LOSER)
    assert first.id != second.id
