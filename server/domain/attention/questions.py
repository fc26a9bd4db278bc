"""Questions without a reply: those of a project's shared context, and those by mail."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.acp import ACPPriority
from schemas.attention import Urgency
from schemas.base import present
from schemas.plain import one_line
from server.domain.agents import same_agent
from server.domain.attention.items import (
    Actor,
    ItemSubject,
    NextStep,
    Opening,
    ProjectNames,
    WaitingItem,
    bounded,
    item_id,
    named,
)

QUESTION = "question"
"""The type of packets that are questions."""
QUERY, RESPONSE = "knowledge.query", "knowledge.response"
"""The types of messages that ask, and that answer by `payload.query_id`."""
SHOWN_WIDTH = 120
"""Characters of a question in a summary."""
BY_PRIORITY: dict[ACPPriority, Urgency] = {
    "critical": "urgent",
    "high": "high",
    "normal": "high",
    "low": "low",
}
"""The urgency of a question by mail: somebody waits for its answer."""


class PacketReply(NamedTuple):
    """A packet that answers another: its repo and its type."""

    repo_id: str
    type: str


@dataclass(frozen=True, slots=True)
class QuestionSubject:
    """A packet of type question, and the packets that reply to it. `asked_at` is a stamp."""

    project: ProjectNames
    packet_id: str
    from_repo: str
    from_agent: str
    asked_at: int
    content: Mapping[str, Any]
    related_contracts: tuple[str, ...]
    replies: tuple[PacketReply, ...]


def openings(
    project_id: str,
    packet_id: str,
    from_repo: str,
    from_agent: str,
    asked_at: int,
    *,
    urgent: bool,
    replies: Iterable[PacketReply],
) -> list[Opening]:
    """A question waits for every other repo of its project until one of them has replied. A
    question in return is no reply."""
    if any(reply.repo_id != from_repo and reply.type != QUESTION for reply in replies):
        return []
    return [
        Opening(
            item_id("answer", project_id, packet_id),
            "answer",
            "urgent" if urgent else "high",
            asked_at,
            project_id,
            not_repo=from_repo,
            not_agent=from_agent,
        )
    ]


def is_urgent(content: Mapping[str, Any]) -> bool:
    """Whether the asker has marked the question as urgent."""
    return content.get("urgent") is True


def items(subject: QuestionSubject, who: Actor) -> Iterator[WaitingItem]:
    """The question, if it waits for the agent."""
    for opening in openings(
        subject.project.project_id,
        subject.packet_id,
        subject.from_repo,
        subject.from_agent,
        subject.asked_at,
        urgent=is_urgent(subject.content),
        replies=subject.replies,
    ):
        if opening.concerns(who):
            yield _item(subject, opening, who.repos[subject.project.project_id])


def _item(subject: QuestionSubject, opening: Opening, repo_id: str) -> WaitingItem:
    content = subject.content
    question = content.get("question")
    asker = subject.project.repo(subject.from_repo)
    detail = {
        "askedBy": {
            "repo": asker,
            "repoId": subject.from_repo,
            "agentId": subject.from_agent,
        },
        "question": bounded(question if isinstance(question, str) else dict(content)),
        "options": bounded(content.get("options")),
        "urgent": opening.urgency == "urgent",
        "relatedContracts": list(subject.related_contracts) or None,
    }
    step = NextStep(
        "cacp_context_share",
        "cacp/context/share",
        present(
            {
                "projectId": subject.project.project_id,
                "replyTo": subject.packet_id,
                "relatedContracts": list(subject.related_contracts) or None,
            }
        ),
        {
            "type": "what the answer is: decision, api_spec, code_snippet, dependency_info, …; a "
            "question in return does not answer it",
            "content": 'the answer, a JSON object such as {"answer": "…"}',
        },
    )
    summary = (
        f"Answer {named(asker)} (project {named(subject.project.name)}): "
        f"{named(first_line(question, content))}"
    )
    return WaitingItem(
        opening.id,
        opening.kind,
        opening.urgency,
        opening.since,
        ItemSubject("question", subject.packet_id, first_line(question, content)),
        summary,
        present(detail),
        (step,),
        subject.project,
        repo_id,
    )


def first_line(question: Any, content: Mapping[str, Any]) -> str:
    """The beginning of a question, whose content a peer may have written in any form."""
    text = question if isinstance(question, str) else next(iter(content.values()), "a question")
    return one_line(text, SHOWN_WIDTH) or "a question"


# --- by mail ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MailQuestionSubject:
    """A message of type knowledge.query that reached `recipient`. `repliers` are the agents that
    have replied to it, other than with a query. `asked_at` is a stamp; agents are addresses."""

    message_id: str
    recipient: str
    from_agent: str
    asked_at: int
    priority: ACPPriority
    topic: str | None
    payload: Mapping[str, Any]
    repliers: tuple[str, ...]


def mail_items(subject: MailQuestionSubject, who: Actor) -> Iterator[WaitingItem]:
    """The question, if it waits for the agent: until anyone but the asker has replied."""
    asker = subject.from_agent
    if not same_agent(subject.recipient, who.agent_id) or same_agent(asker, who.agent_id):
        return
    if any(not same_agent(replier, asker) for replier in subject.repliers):
        return
    question = str(subject.payload.get("question", ""))
    step = NextStep(
        "acp_respond",
        "acp/respond",
        {
            "message_id": subject.message_id,
            "type": RESPONSE,
            "payload": {"query_id": subject.message_id},
        },
        {"payload.summary": "the answer in a line", "payload.answer": "the answer"},
    )
    detail = {
        "askedBy": {"agentId": asker},
        "question": bounded(question),
        "topic": subject.topic,
        "details": bounded(subject.payload.get("details")),
        "priority": subject.priority,
    }
    yield WaitingItem(
        item_id("answer", "mail", subject.message_id, subject.recipient),
        "answer",
        BY_PRIORITY[subject.priority],
        subject.asked_at,
        ItemSubject("message", subject.message_id, one_line(question, SHOWN_WIDTH) or "a question"),
        f"Answer {named(asker)}: {named(one_line(question, SHOWN_WIDTH))}",
        present(detail),
        (step,),
    )
