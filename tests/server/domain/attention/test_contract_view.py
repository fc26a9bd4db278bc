"""What an item on a contract carries: all that its reader needs to act."""

from server.domain import contract_steps as steps
from server.domain.attention.items import WaitingItem
from server.domain.canonical import digest
from server.domain.contract import Facts, join
from server.domain.contract_steps import Party
from tests.server.domain.attention.subjects import CONTRACT, PROJECT, waiting
from tests.server.domain.histories import API, CONTENTS, IOS, WEB, propose
from tests.server.domain.story import Story


def only(facts: Facts, who: Party) -> WaitingItem:
    [item] = waiting(facts, who)
    return item


def requested(facts: Facts, who: Party, stamp: int, comment: str, change: object) -> Facts:
    response = steps.respond(
        facts, who, "request_change", stamp, comment=comment, suggested_change=change
    )
    return join(facts, [response])


def test_a_proposal_carries_its_content_and_who_proposes_it() -> None:
    item = only(propose(API, WEB), WEB)
    assert item.detail["content"] == CONTENTS[0]
    assert item.detail["proposedBy"] == {
        "repo": "api-repo",
        "repoId": "api",
        "agentId": API.agent_id,
    }
    assert (item.repo_id, item.subject.id) == ("web", CONTRACT)
    assert item.summary == (
        "Respond to contract `login` (project `shop`), version 1: `api-repo` proposes it"
    )
    [step] = item.next
    assert step.params == {"projectId": PROJECT, "contractId": CONTRACT, "version": 1}
    assert step.fill["action"] == "agree or request_change (say what in comment) or reject"


def test_every_request_that_stands_is_carried_with_its_suggestion() -> None:
    facts = requested(propose(API, WEB, IOS), WEB, 2, "no b", {"b": 1})
    facts = requested(facts, IOS, 3, "", [1])
    item = only(facts, API)
    assert [
        (response["repo"], response.get("comment"), response["suggestedChange"])
        for response in item.detail["responses"]
    ] == [("web-repo", "no b", {"b": 1}), ("ios-repo", "", [1])]
    assert item.next[0].params["parties"] == ["api", "ios", "web"], "not every repo of the project"
    assert "`ios-repo`, `web-repo` ask for a change" in item.summary


def test_the_difference_is_to_what_the_reader_agreed_to_last() -> None:
    story = Story(API, WEB, IOS, policy="all")
    story.then(WEB, "agree")
    story.then(IOS, "request_change")
    for path in ("/x", "/y"):
        content = {"path": path}
        version = steps.update(
            story.facts, API, content, digest(content), ("api", "ios", "web"), story.now + 1, path
        )
        story.facts = join(story.facts, [version])
        story.now += 1
    web, ios = only(story.facts, WEB).detail, only(story.facts, IOS).detail
    assert (web["diff"]["basis"], web["diff"]["fromVersion"]) == ("agreed", 1)
    assert web["diff"]["lines"] == ["- path: /a", "+ path: /y"]
    assert ios["diff"]["basis"] == "previous"
    assert ios["diff"]["lines"] == ["- path: /x", "+ path: /y"]
    assert (ios["yourLastResponse"]["action"], ios["yourLastResponse"]["version"]) == (
        "request_change",
        1,
    )
    assert ios["changeNote"] == "/y"


def test_a_repair_carries_the_cases_that_failed() -> None:
    story = Story(API, WEB)
    for who, action in ((WEB, "agree"), (API, "complete"), (WEB, "complete")):
        story.then(who, action)
    facts = join(
        story.facts,
        steps.verify(story.facts, WEB, "failure", 50, notes="500", details={"case": "login"}),
    )
    item = only(facts, API)
    assert item.kind == "repair"
    [failure] = item.detail["failures"]
    assert (failure["repo"], failure["notes"], failure["details"], failure["round"]) == (
        "web-repo",
        "500",
        {"case": "login"},
        1,
    )
    assert item.next[0].tool_params == {"step": "complete"}


def test_what_is_long_is_cut_and_says_so() -> None:
    content = {"text": "x" * 100_000}
    item = only(propose(API, WEB, content=content), WEB)
    assert len(item.detail["content"]) < 9_000
    assert item.detail["content"].endswith("more characters)")


def test_a_response_of_a_repo_that_is_no_party_counts() -> None:
    facts = requested(propose(API, WEB), IOS, 2, "me too", None)
    item = next(item for item in waiting(facts, API) if item.kind == "revise")
    assert [response["repo"] for response in item.detail["responses"]] == ["ios-repo"]
