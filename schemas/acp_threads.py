"""acp/threads and acp/thread: mail by thread."""

from typing import Annotated

from pydantic import Field

from schemas.acp import ACPMessageStatus, ACPParams, ACPPriority
from schemas.acp_calls import Found, Held
from schemas.base import Count, Identifier, Result, Text, Timestamp


class MailThreadsParams(ACPParams):
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Identifier | None = None


class MailThreadSummary(Result):
    """A thread by the last message of it that the caller may see, whose sender, recipients, state
    and time these are; `topic` is of the first. `threadId` is for acp/thread; `name` is the
    `thread_id` of its messages, which other threads may share. `messages` and `unread` count what
    the caller may see, up to 100."""

    thread_id: Identifier
    name: Identifier
    topic: Text
    summary: Text
    last_message_id: Identifier
    from_agent: Identifier
    to: list[Identifier]
    more_recipients: Count
    type: Identifier
    priority: ACPPriority
    status: ACPMessageStatus
    held: Held | None = None
    at: Timestamp
    messages: Count
    unread: Count


class MailThreadsResult(Result):
    """Newest first."""

    threads: list[MailThreadSummary]
    next_cursor: Identifier | None = None


class MailThreadParams(ACPParams):
    thread_id: Identifier
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Identifier | None = None


class MailThreadResult(Result):
    """The last messages of a thread, oldest first; `nextCursor` is for those before them."""

    thread_id: Identifier
    name: Identifier
    messages: list[Found]
    next_cursor: Identifier | None = None
