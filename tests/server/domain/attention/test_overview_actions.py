"""What a caller can do about an item of the overview."""

from server.domain.attention.items import ItemSubject
from server.domain.attention.overview import AwaitedParty, OpenItem
from server.domain.attention.overview_actions import Rights, actions_of

WEB = AwaitedParty("r-web", "web", "aid://x/web")
API = AwaitedParty("r-api", "api", "aid://x/api")
ME = "aid://x/me"
CONTRACT = OpenItem(
    "i",
    "respond",
    "high",
    1,
    ItemSubject("contract", "c1", "login"),
    (WEB,),
    (API,),
    "p1",
    "shop",
    2,
)
NUDGES = Rights(ME, sends_mail=True)


def names(item: OpenItem, may: Rights) -> list[str]:
    return [step.name for step in actions_of(item, may)]


def test_a_caller_without_rights_can_do_nothing() -> None:
    assert names(CONTRACT, Rights(ME)) == []


def test_those_who_must_act_are_nudged_but_nobody_nudges_itself() -> None:
    [step] = actions_of(CONTRACT, NUDGES)
    assert (step.name, step.method, step.params["to"]) == ("nudge", "acp/send", [WEB.agent])
    assert names(CONTRACT, Rights(WEB.agent or "", sends_mail=True)) == []


def test_a_party_agrees_and_another_repo_of_the_project_asks_for_a_change() -> None:
    assert names(CONTRACT, Rights(ME, {"p1": "r-web"})) == ["agree", "request_change"]
    assert names(CONTRACT, Rights(ME, {"p1": "r-api"})) == ["request_change"]
    assert names(CONTRACT, Rights(ME, {"p2": "r-web"})) == []
    [agree, _] = actions_of(CONTRACT, Rights(ME, {"p1": "r-web"}))
    assert agree.params == {
        "projectId": "p1",
        "contractId": "c1",
        "version": 2,
        "action": "agree",
    }


def test_nobody_agrees_to_its_own_version_and_a_lost_claim_has_no_version() -> None:
    own = Rights(ME, {"p1": "r-web"})
    assert names(CONTRACT._replace(by=ME), own) == ["request_change"]
    assert names(CONTRACT._replace(kind="revise"), own) == []
    claim = CONTRACT._replace(kind="conflict", subject=ItemSubject("repo", "r-web", "web"))
    assert names(claim, own) == []


def test_only_a_human_approves() -> None:
    gated = CONTRACT._replace(
        kind="approve", subject=ItemSubject("message", "m1", "Deploy"), must_act=(), project_id=None
    )
    assert names(gated, NUDGES) == []
    steps = actions_of(gated, Rights(ME, human=True))
    assert [(step.name, step.params["decision"]) for step in steps] == [
        ("approve", "approve"),
        ("refuse", "refuse"),
    ]


def test_a_question_is_answered_by_another_repo_of_its_project() -> None:
    asked = CONTRACT._replace(
        kind="answer", subject=ItemSubject("question", "q1", "Cents?"), any_of=True
    )
    [step] = actions_of(asked, Rights(ME, {"p1": "r-web"}))
    assert step.params == {"projectId": "p1", "replyTo": "q1", "type": "decision"}
    assert names(asked, Rights(ME, {"p1": "r-api"})) == [], "it is the asker's own"


def test_a_question_by_mail_is_answered_by_its_recipient() -> None:
    asked = CONTRACT._replace(
        kind="answer", subject=ItemSubject("message", "m1", "Cents?"), project_id=None
    )
    [step] = actions_of(asked, Rights(WEB.agent or ""))
    assert (step.name, step.params["payload"]) == ("answer_mail", {"query_id": "m1"})
    assert names(asked, Rights(ME)) == []


def test_an_escalated_handoff_is_revoked_by_a_coordinator() -> None:
    late = CONTRACT._replace(
        kind="handoff", subject=ItemSubject("handoff", "h1", "Login"), reason="escalated"
    )
    assert names(late, Rights(ME, coordinates=True)) == ["revoke_handoff"]
    assert names(late._replace(reason=None), Rights(ME, coordinates=True)) == []


def test_the_repo_of_an_agent_that_is_away_is_released_by_who_owns_the_project() -> None:
    absent = CONTRACT._replace(kind="absent", subject=ItemSubject("repo", "r-web", "web"))
    assert names(absent, Rights(ME, owns=frozenset({"p1"}))) == ["release"]
    assert names(absent, Rights(ME, owns_all=True)) == ["release", "revoke"]
    assert names(absent, Rights(ME)) == []
