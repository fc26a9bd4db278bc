"""Questions wait until somebody else has replied."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.attention.derive import attention
from server.domain.attention.questions import MailQuestionSubject, PacketReply, QuestionSubject
from tests.server.domain.attention.subjects import NAMES, PROJECT, actor
from tests.server.domain.histories import API, IOS, PARTIES, WEB

ASKED = QuestionSubject(
    NAMES, "packet-1", "api", API.agent_id, 5, {"question": "Cents or euros?"}, ("c1",), ()
)
MAILED = MailQuestionSubject(
    "m1",
    "aid://example.com/web",
    "aid://example.com/api",
    5,
    "normal",
    None,
    {"question": "Why?"},
    (),
)


def waits_for(asked: QuestionSubject) -> list[str]:
    return [who.repo_id for who in PARTIES.values() if attention([asked], actor(who))]


def test_a_question_waits_for_every_other_repo() -> None:
    assert waits_for(ASKED) == ["web", "ios"]
    assert waits_for(replace(ASKED, from_agent=WEB.agent_id)) == ["ios"], "nobody asks itself"


@pytest.mark.parametrize(
    ("reply", "is_open"),
    [
        (PacketReply("web", "decision"), False),
        (PacketReply("ios", "api_spec"), False),
        (PacketReply("web", "question"), True),
        (PacketReply("api", "decision"), True),
    ],
)
def test_a_reply_of_another_repo_that_is_no_question_closes_it(
    reply: PacketReply, is_open: bool
) -> None:
    assert bool(waits_for(replace(ASKED, replies=(reply,)))) == is_open


@given(st.permutations([PacketReply("web", "question"), PacketReply("ios", "decision")]))
def test_the_order_of_replies_does_not_matter(replies: list[PacketReply]) -> None:
    assert waits_for(replace(ASKED, replies=tuple(replies))) == []


def test_it_carries_the_question_and_its_options_and_names_the_reply() -> None:
    content = {"question": "Which?", "options": ["a", "b"], "urgent": True}
    [item] = attention([replace(ASKED, content=content)], actor(WEB))
    assert (item.urgency, item.detail["options"]) == ("urgent", ["a", "b"])
    [step] = item.next
    assert (step.tool, step.method) == ("cacp_context_share", "cacp/context/share")
    assert step.params == {
        "projectId": PROJECT,
        "replyTo": "packet-1",
        "relatedContracts": ["c1"],
    }


@pytest.mark.parametrize(
    "content", [{}, {"question": 5}, {"other": {"deep": 1}}, {"urgent": "yes"}]
)
def test_a_question_of_any_shape(content: dict[str, Any]) -> None:
    """Peers share packets of type question with any content."""
    [item] = attention([replace(ASKED, content=content)], actor(WEB))
    assert item.urgency == "high"
    assert item.detail["question"] == content


def test_a_question_by_mail_waits_for_its_recipient() -> None:
    [item] = attention([MAILED], actor(WEB))
    [step] = item.next
    assert step.params["payload"] == {"query_id": "m1"}
    assert attention([MAILED], actor(IOS)) == []
    answered = replace(MAILED, repliers=("aid://example.com/ios",))
    assert attention([answered], actor(WEB)) == []
    again = replace(MAILED, repliers=("aid://example.com/api",))
    assert attention([again], actor(WEB)) == [item], "what the asker adds is no answer"
