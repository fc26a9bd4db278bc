"""Contract facts: the story of each transition, and what it refuses (design §5, §7)."""

import pytest

from schemas.contract import ContractStatus
from server.domain import contract
from server.domain import contract_steps as steps
from server.domain.canonical import digest
from server.domain.contract import join, status_of
from server.domain.contract_steps import ALLOWED, Party
from server.domain.errors import Conflict, Forbidden, IllegalTransition
from tests.server.domain.histories import (
    API,
    CONTENTS,
    IOS,
    WEB,
    Step,
    facts_of,
)
from tests.server.domain.story import ROADS, Story, story_in


@pytest.mark.parametrize("status", list(ROADS))
def test_request_change_is_allowed_in_every_state_and_reopens(status: ContractStatus) -> None:
    assert story_in(status).then(API, "request_change") == "negotiating"


def test_an_update_answers_a_request_and_is_proposed() -> None:
    story = story_in("negotiating")
    assert story.then(API, "update") == "proposed"
    current = contract.current_of(story.facts)
    assert (current.version, current.content) == (2, CONTENTS[1])
    assert current.parent == digest(CONTENTS[0])


def test_who_requested_a_change_may_agree_after_all() -> None:
    assert story_in("negotiating").then(WEB, "agree") == "agreed"


@pytest.mark.parametrize("status", ["implemented", "verified"])
def test_a_failure_opens_a_round_in_which_all_need_revision(status: ContractStatus) -> None:
    story = story_in(status)
    assert story.then(API, "failure") == "agreed"
    assert contract.round_of(story.facts, contract.current_of(story.facts)) == 2
    assert story.works == {"api": "needs_revision", "web": "needs_revision"}
    story.then(API, "complete")
    assert story.works == {"api": "complete", "web": "needs_revision"}
    assert story.then(WEB, "complete") == "implemented"
    assert story.then(WEB, "success") == "verified"


@pytest.mark.parametrize("status", list(ROADS))
@pytest.mark.parametrize("action", list(ALLOWED))
def test_an_illegal_step_says_what_is_allowed_and_changes_nothing(
    status: ContractStatus, action: steps.Action
) -> None:
    built = status in ("implemented", "verified") and action in ("start", "complete")
    if status in ALLOWED[action] or built:
        # What is built is complete: it is said again (see below), or refused.
        return
    story = story_in(status)
    before = dict(story.facts)
    called = {"start": "in_progress", "verify": "success"}.get(action, action)
    with pytest.raises(IllegalTransition) as refused:
        story.then(WEB, called)
    assert refused.value.data == {
        "reason": "illegal_transition",
        "action": action,
        "from": status,
        "allowed": [name for name, states in ALLOWED.items() if status in states],
    }
    assert story.facts == before


def test_a_refused_update_shows_the_way_forward() -> None:
    story = story_in("agreed")
    with pytest.raises(IllegalTransition) as refused:
        story.then(API, "update")
    assert refused.value.message == (
        "Cannot update a contract that is agreed: request_change reopens it, and "
        "cacp/contract/compare tells before what a content would break. "
        "Allowed now: agree, request_change, start, complete"
    )


# --- retries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("road", "who", "action"),
    [
        ([], WEB, "agree"),
        ([], WEB, "request_change"),
        ([], WEB, "reject"),
        ([(WEB, "agree")], WEB, "in_progress"),
        ([(WEB, "agree")], WEB, "complete"),
        ([(WEB, "agree"), (API, "complete")], WEB, "complete"),
        ([(WEB, "agree"), (API, "complete"), (WEB, "complete")], WEB, "success"),
        ([(WEB, "agree"), (API, "complete"), (WEB, "complete")], WEB, "partial"),
        ([(WEB, "agree"), (API, "complete"), (WEB, "complete")], WEB, "failure"),
    ],
)
def test_what_is_said_again_is_no_step(
    road: list[tuple[Party, str]], who: Party, action: str
) -> None:
    story = Story(API, WEB)
    for step in road:
        story.then(*step)
    status = story.then(who, action)
    before = dict(story.facts)
    assert story.then(who, action) == status
    assert story.facts == before


@pytest.mark.parametrize("after", [[(WEB, "complete"), (API, "complete")], [(API, "complete")]])
def test_an_agreement_is_repeated_in_whichever_state_it_led_to(
    after: list[tuple[Party, str]],
) -> None:
    story = Story(API, WEB)
    story.then(WEB, "agree")
    for step in after:
        story.then(*step)
    before, status = dict(story.facts), story.status
    assert story.then(WEB, "agree") == status
    assert story.facts == before


def test_a_completion_is_repeated_after_the_others_have_verified_it() -> None:
    story = story_in("verified")
    before = dict(story.facts)
    assert story.then(WEB, "complete") == "verified"
    assert story.facts == before
    with pytest.raises(IllegalTransition):
        steps.implement(story.facts, WEB, "complete", 90, notes="more")


def test_a_failure_of_the_next_round_is_no_retry() -> None:
    story = story_in("implemented")
    for who, action in [(WEB, "failure"), (WEB, "complete"), (API, "complete")]:
        story.then(who, action)
    assert story.then(WEB, "failure") == "agreed"
    assert contract.round_of(story.facts, contract.current_of(story.facts)) == 3


@pytest.mark.parametrize("who", [API, WEB])
def test_a_failure_that_comes_after_another_is_recorded_with_it(who: Party) -> None:
    """Of two who verify at once, one comes second; who found a failure may say more of it."""
    story = story_in("implemented")
    story.then(WEB, "failure")
    [said] = steps.verify(story.facts, who, "failure", 90, notes="another one")
    facts = join(story.facts, [said])
    assert (said.kind, said.key) in facts
    assert status_of(facts) == "agreed"
    assert contract.round_of(facts, contract.current_of(facts)) == 2


def test_a_failure_is_of_the_new_round_once_somebody_has_begun_it() -> None:
    story = story_in("implemented")
    story.then(WEB, "failure")
    story.then(API, "in_progress")
    with pytest.raises(IllegalTransition):
        story.then(API, "failure")


@pytest.mark.parametrize("road", [[], [(API, "complete")], [(API, "complete"), (API, "success")]])
def test_a_start_that_comes_late_undoes_no_completion(road: list[tuple[Party, str]]) -> None:
    story = story_in("agreed")
    for who, action in [(WEB, "in_progress"), (WEB, "complete"), *road]:
        story.then(who, action)
    before, status = dict(story.facts), story.status
    assert story.then(WEB, "in_progress") == status
    assert story.facts == before


def test_who_has_a_new_plan_begins_anew() -> None:
    story = story_in("agreed")
    story.then(WEB, "complete")
    work = steps.implement(story.facts, WEB, "in_progress", 90, plan="Another way")
    assert work.status == "in_progress"


# --- a request that is taken back ---------------------------------------------------------------


@pytest.mark.parametrize("who", [IOS, API], ids=["no party", "the author"])
def test_who_asked_for_a_change_takes_it_back_by_agreeing(who: Party) -> None:
    """Nobody but who made it can: it would stand for ever."""
    story = story_in("agreed")
    assert story.then(who, "request_change") == "negotiating"
    assert story.then(who, "agree") == "agreed"


@pytest.mark.parametrize("who", [IOS, API], ids=["no party", "the author"])
def test_to_take_a_request_back_is_no_agreement(who: Party) -> None:
    story = Story(API, WEB)
    story.then(who, "request_change")
    assert story.then(who, "agree") == "proposed"
    assert story.then(who, "agree") == "proposed", "as often as it is said"
    assert story.then(WEB, "agree") == "agreed"


def test_who_is_no_party_asked_on_another_version() -> None:
    story = Story(API, WEB)
    story.then(IOS, "request_change")
    story.then(API, "update")
    with pytest.raises(Forbidden, match="includes your repo"):
        story.then(IOS, "agree")


# --- agreement (design §5) ----------------------------------------------------------------------


@pytest.mark.parametrize("status", ["agreed", "implemented", "verified"])
def test_a_party_may_agree_after_another_has(status: ContractStatus) -> None:
    story = Story(API, WEB, IOS)
    story.then(WEB, "agree")
    if status != "agreed":
        for who in (API, WEB, IOS):
            story.then(who, "complete")
    if status == "verified":
        story.then(WEB, "success")
    assert story.then(IOS, "agree") == status
    assert ("response", f"1/{digest(CONTENTS[0])}/ios") in story.facts


@pytest.mark.parametrize("status", list(ROADS))
def test_the_answer_to_an_agreement_is_agreed_only_when_the_contract_is(
    status: ContractStatus,
) -> None:
    said = steps.outcome_of("agree", status)
    assert (said == "agreed") == (status in ("agreed", "implemented", "verified"))
    assert said in ("agreed", status)
    assert steps.outcome_of("request_change", status) == "change_requested"
    assert steps.outcome_of("reject", status) == "rejected"


def test_the_author_of_the_current_version_cannot_agree_to_it() -> None:
    story = Story(API, WEB)
    with pytest.raises(Forbidden) as refused:
        story.then(API, "agree")
    assert refused.value.data == {"reason": "own_version", "parties": ["web"]}
    story.then(API, "request_change")
    story.then(WEB, "update")
    with pytest.raises(Forbidden):
        story.then(WEB, "agree")
    assert story.then(API, "agree") == "agreed"


def test_another_version_of_the_same_agent_is_no_other_party() -> None:
    story = Story(API, WEB)
    with pytest.raises(Forbidden):
        story.then(Party("web", "aid://example.com/api@2.0.0"), "agree")


def test_who_is_alone_may_agree_to_its_own() -> None:
    assert Story(API).then(API, "agree") == "agreed"


@pytest.mark.parametrize("action", ["agree", "in_progress", "complete", "success"])
def test_who_is_no_party_neither_agrees_nor_implements(action: str) -> None:
    status: ContractStatus = "proposed" if action == "agree" else "agreed"
    story = story_in("implemented" if action == "success" else status)
    with pytest.raises(Forbidden) as refused:
        story.then(IOS, action)
    assert refused.value.data == {"reason": "not_a_party", "parties": ["api", "web"]}


def test_who_is_no_party_may_ask_for_a_change() -> None:
    assert story_in("agreed").then(IOS, "request_change") == "negotiating"


def test_a_view_that_is_stale_is_a_conflict() -> None:
    story = story_in("negotiating")
    story.then(API, "update")
    steps.check_version(story.facts, 2)
    steps.check_version(story.facts, None)
    with pytest.raises(Conflict) as refused:
        steps.check_version(story.facts, 1)
    assert refused.value.data == {"reason": "stale_version", "currentVersion": 2}


# --- work ---------------------------------------------------------------------------------------


def test_what_is_not_said_again_of_the_work_is_kept() -> None:
    story = story_in("agreed")
    started = steps.implement(
        story.facts, WEB, "in_progress", 10, plan="hooks", files=("a.ts",), test_endpoint="/t"
    )
    facts = join(story.facts, [started])
    done = steps.implement(facts, WEB, "complete", 20, files=("a.ts", "b.ts"), notes="done")
    assert (done.plan, done.files, done.notes) == ("hooks", ("a.ts", "b.ts"), "done")
    assert (done.test_endpoint, done.started_at, done.completed_at) == ("/t", 10, 20)


def test_work_begins_anew_in_a_new_round() -> None:
    story = story_in("implemented")
    story.then(API, "failure")
    work = steps.implement(story.facts, WEB, "in_progress", 90)
    assert (work.round, work.plan, work.files, work.started_at) == (2, None, (), 90)
    assert work.completed_at is None


@pytest.mark.parametrize(
    ("road", "again"),
    [
        ([(WEB, "request_change")], (WEB, "reject")),
        ([(WEB, "agree"), (WEB, "in_progress")], (WEB, "complete")),
    ],
)
def test_who_speaks_again_is_heard_though_the_clock_went_back_an_hour(
    road: list[tuple[Party, str]], again: tuple[Party, str]
) -> None:
    """Design §7: what takes the place of something is stamped after it."""
    story = Story(API, WEB)
    story.now += 3_600_000_000
    for who, action in road:
        story.then(who, action)
    before = dict(story.facts)
    who, action = again
    [fact] = facts_of(before, Step(0, who, action, CONTENTS[1]), 7)
    known = before[fact.kind, fact.key]
    assert fact.stamp == known.stamp + 1
    assert join(before, [fact])[fact.kind, fact.key] == fact
