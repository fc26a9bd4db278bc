"""The MCP tools: a table over the JSON-RPC methods. No SDK in here, and no network.

A tool is a method described for a model. One call of a tool is one call of its method through the
same dispatcher, so authority, validation and limits are the same. The input schema is made from the
method's params. The result is text: the node's own words are plain, agents' text is fenced
(`server.domain.untrusted`).
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas import handoff, teamspace
from schemas.acp_payloads import PAYLOADS
from server.domain.acp.drafts import payload_members
from server.mcp_tools import render, render_acp, render_contract

Json = dict[str, Any]
MORE = "more"
"""The argument that continues a long answer."""
Call = Callable[[str, Json], Awaitable[Any]]
"""Calls a JSON-RPC method of a node and returns its result. Raises CallFailed."""


class CallFailed(Exception):
    """A call without a result. `data` is that of the JSON-RPC error, if there was one."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class UnknownTool(Exception):
    """No tool has this name."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool. `steps` maps the values of the argument `chooser` to methods; a tool for one method
    has no chooser, and maps "" to it. `fixed` are params that the tool sets itself, and `left_out`
    those that models can't set."""

    name: str
    title: str
    description: str
    steps: Mapping[str, str]
    show: Callable[[Json, Any], str] = render.facts
    chooser: str = ""
    reads: bool = False
    idempotent: bool = False
    destructive: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    about: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of params that differ from those in `ABOUT`."""
    own: Mapping[str, Json] = field(default_factory=dict)
    """Params of the tool itself, with their schemas: they say how a result is shown."""
    brief: frozenset[str] = frozenset()
    """Params whose schema is only their type; `about` says what they hold."""
    default_step: str = ""
    """What an absent chooser means; "" if it is required."""
    safe_actions: frozenset[str] = frozenset()
    """The values of `action` with which a call changes nothing; without any, `reads` says it."""
    repeatable: bool = False
    """Whether the same call again changes nothing more, though it is not read-only."""
    rest: Callable[[Json, Json], str] = lambda asked, result: "nothing else shows it"
    """The call that shows what a long answer leaves out, for calls that can't be repeated."""
    for_the_node: frozenset[str] = frozenset()
    """Params that the node refuses in words of its own."""

    def may_repeat(self, given: Json) -> bool:
        """Whether the same call again changes nothing more, so that it can return the rest of a
        long answer."""
        if self.safe_actions:
            return given.get("action") in self.safe_actions
        return self.reads or self.repeatable

    @property
    def has_pages(self) -> bool:
        """Whether a long answer of some call can be continued."""
        return self.reads or self.repeatable or bool(self.safe_actions)

    def method(self, given: Json) -> str:
        """The method that these arguments choose. Raises CallFailed."""
        if not self.chooser:
            return self.steps[""]
        step = given.get(self.chooser, self.default_step)
        if not isinstance(step, str) or step not in self.steps:
            raise CallFailed(
                f"{self.chooser} should be one of {', '.join(self.steps)}",
                {"reason": "invalid_params"},
            )
        return self.steps[step]

    def params(self, given: Json) -> Json:
        """The method's params for these arguments."""
        not_sent = {self.chooser, *self.own}
        sent = {name: value for name, value in given.items() if name not in not_sent}
        return {**sent, **self.fixed}


_TYPES = [type for type in PAYLOADS if not type.startswith("handoff.")]
"""The message types that agents send; handoffs have their own tool."""

_NOT_FOR_MODELS = frozenset({"protocol", "version", "sequence"})
"""Members of a message that the node fills in."""
_SENDER = frozenset({"from"})
_BODIES: Json = {"bodies": {"type": "boolean", "description": "Show the whole messages"}}

_PAYLOADS = "summary (required), details; more by type: " + "; ".join(
    f"{type}: {more}"
    for type in _TYPES
    if (more := payload_members(type).partition("details, ")[2])
)


def _actions(needed: Mapping[Any, tuple[str, ...]]) -> str:
    """The required params of each action, in a line."""
    actions = (f"{name} ({', '.join(params)})" for name, params in needed.items() if params)
    return f"Required params: {'; '.join(actions)}"


_TABLE = (
    McpTool(
        "cacp_attention",
        "What needs you",
        "Show what waits for you: contracts to respond to, revise, implement, repair or verify; "
        "questions, handoffs, mail. Each item names the call that closes it. Call this first, "
        "after each step, and before you stop.",
        {"": "cacp/attention/list"},
        render.attention,
        reads=True,
        left_out=frozenset({"repoId", "urgentOnly", "limit"}),
        about={
            "projectId": "Only this project",
            "kinds": "Only these kinds",
            "after": "As shown last, for the next page",
        },
    ),
    McpTool(
        "cacp_project_create",
        "Create a project",
        "Create a project: one feature across several repositories. List those that take part, "
        "then take yours with cacp_project_join.",
        {"": "cacp/project/create"},
        # Whoever is verified does not decide by what.
        left_out=frozenset({"verificationPolicy"}),
        brief=frozenset({"repos"}),
    ),
    McpTool(
        "cacp_project_list",
        "List projects",
        "List the projects on this node with their ids, the newest first.",
        {"": "cacp/project/list"},
        render.projects,
        reads=True,
        fixed={"summary": True},
        left_out=frozenset({"summary", "includeArchived"}),
    ),
    McpTool(
        "cacp_project_get",
        "Show a project",
        "Show a project: objective, repositories and their holders, contracts and their status.",
        {"": "cacp/project/get"},
        render.project,
        reads=True,
        fixed={"summary": True},
        left_out=frozenset({"summary"}),
    ),
    McpTool(
        "cacp_project_join",
        "Join a project",
        "Take a repository of a project as yours, before you propose, respond, share or implement.",
        {"": "cacp/project/join"},
        idempotent=True,
    ),
    McpTool(
        "cacp_agents",
        "List agents",
        "List the agents you can work with: ids to write to, their repositories, who is awake.",
        {"": "cacp/agent/list"},
        render.agents,
        reads=True,
        about={"projectId": "Only holders of its repositories"},
    ),
    McpTool(
        "cacp_contract_propose",
        "Propose a contract",
        "Propose an interface between repositories (an endpoint, an event, a data model). It is "
        "agreed once another party agrees.",
        {"": "cacp/contract/propose"},
        render.version,
    ),
    McpTool(
        "cacp_contract_respond",
        "Respond to a contract",
        "Agree to a contract that another party wrote, request a change (say which in comment), or "
        "reject it. Read it first, and pass the version you read.",
        {"": "cacp/contract/respond"},
        render.response,
        idempotent=True,
    ),
    McpTool(
        "cacp_contract_update",
        "Write a new version of a contract",
        "Write a new version of a contract: the whole content, not a diff. Earlier agreement to it "
        "ends. Pass the version you read.",
        {"": "cacp/contract/update"},
        render.version,
        about={"content": "The whole new content"},
    ),
    McpTool(
        "cacp_contract_get",
        "Read a contract",
        "Show a contract: your next step, responses with comments and suggested changes, what "
        "changed since you agreed, content, implementations, verifications. Or its timeline, "
        "versions that lost a race, or whom a version breaks, or content not yet proposed.",
        {
            "contract": "cacp/contract/overview",
            "timeline": "cacp/contract/timeline",
            "conflicts": "cacp/contract/conflicts",
            "compare": "cacp/contract/compare",
        },
        render_contract.contract,
        chooser="view",
        default_step="contract",
        reads=True,
    ),
    McpTool(
        "cacp_context_share",
        "Share context",
        "Share what the other agents of a project need: code, types, an API's errors, an "
        "environment, or the answer to a question.",
        {"": "cacp/context/share"},
        about={"content": "Any JSON object"},
    ),
    McpTool(
        "cacp_context_ask",
        "Ask the project",
        "Ask the other agents of a project a question. cacp_context_list shows the answer.",
        {"": "cacp/context/askQuestion"},
    ),
    McpTool(
        "cacp_context_list",
        "Read shared context",
        "List the newest context of a project: questions, answers, decisions, code.",
        {"": "cacp/context/list"},
        render.packets,
        reads=True,
        about={"before": "The packetId before which to list"},
    ),
    McpTool(
        "cacp_implementation_report",
        "Report on an implementation",
        "Report your work on an agreed contract. start: you begin; give a plan. complete: your "
        "side is done; give its files. verify: you tested both sides together; give the result.",
        {
            "start": "cacp/implementation/start",
            "complete": "cacp/implementation/complete",
            "verify": "cacp/implementation/verify",
        },
        chooser="step",
        idempotent=True,
        left_out=frozenset({"receipt"}),
        about={"commit": "complete: the git commit, its whole hash"},
    ),
    McpTool(
        "acp_send",
        "Send a message",
        "Send a durable message to agents: it waits until they read it. About ten a minute, so put "
        "everything into one. Replies come to acp_inbox.",
        {"": "acp/send"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS,
        about={"type": f"One of {', '.join(_TYPES)}", "payload": _PAYLOADS},
        brief=frozenset({"context"}),
        rest=render_acp.rest_of_message,
        for_the_node=_SENDER,
    ),
    McpTool(
        "acp_respond",
        "Reply to a message",
        "Reply to a message that you received, in its thread. The reply goes to its sender.",
        {"": "acp/respond"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS | {"policy", "expires_at"},
        about={
            "message_id": "The message that you reply to",
            "type": "As for acp_send; knowledge.response answers a knowledge.query",
            "payload": "As for acp_send; query_id and message_id are filled in",
        },
        brief=frozenset({"context"}),
        rest=render_acp.rest_of_message,
        for_the_node=_SENDER,
    ),
    McpTool(
        "acp_inbox",
        "Read your mail",
        "List the messages that wait for you, a line each. They stay until you pass their ids in "
        "ack. With wait, the call returns as soon as a message arrives.",
        {"": "acp/inbox"},
        render_acp.mail,
        idempotent=True,
        repeatable=True,
        left_out=frozenset({"format"}),
        own=_BODIES,
        about={
            "cursor": "The cursor shown last; without it, all unacknowledged messages",
            "wait": "Seconds to wait for a message, at most 60",
            "ack": "Ids of messages that you have handled",
            "show": "all: acknowledged ones too",
        },
        for_the_node=_SENDER,
    ),
    McpTool(
        "acp_query",
        "Search messages",
        "Search the messages that you sent or received, newest first, with who has read them.",
        {"": "acp/query"},
        render_acp.found_messages,
        reads=True,
        own=_BODIES,
        about={"agent": "To or from this agent", "since": "From this time on"},
        for_the_node=_SENDER,
    ),
    McpTool(
        "acp_status",
        "Report your status",
        "Report the status of your work to others: an update, blocked (by what: blocked_on), or "
        "complete.",
        {"": "acp/status"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS | {"context", "policy", "expires_at"},
        rest=render_acp.rest_of_message,
        for_the_node=_SENDER,
    ),
    McpTool(
        "acp_handoff",
        "Hand over work",
        "Hand over a task to another agent, or take one over. The sender initiates; the receiver "
        "reads it (get), accepts or rejects, then completes; the sender closes.",
        {"": "acp/handoff"},
        render_acp.handoff,
        left_out=frozenset({"session_key"}),
        about={
            "action": _actions(handoff.NEEDED),
            "to": "The agent that should take over",
            "package": "The task and what its next owner must know; passing tests with "
            "work_state.test_evidence.commands [{command, commit, exit_code}]",
            "detail": "The reason, for the other side",
            "summary": "What was done",
            "package_hash": "Of the package that you read; a changed one is refused",
            "node": "The node that holds it, if acp_inbox did not announce it",
        },
        brief=frozenset({"package"}),
        safe_actions=frozenset({"get", "list", "history"}),
        rest=render_acp.rest_of_handoff,
        for_the_node=_SENDER,
    ),
    McpTool(
        "acp_team",
        "Work in a teamspace",
        "Create a teamspace, list its members and tasks, and change them as far as your role there "
        "allows.",
        {"": "acp/team"},
        render_acp.team,
        about={
            "action": _actions(teamspace.NEEDED),
            "team": "Its id: lower-case letters, digits and hyphens",
        },
        brief=frozenset({"members", "ref"}),
        safe_actions=frozenset({"get", "list", "log"}),
        rest=render_acp.rest_of_team,
        for_the_node=_SENDER,
    ),
)

TOOLS: dict[str, McpTool] = {tool.name: tool for tool in _TABLE}
"""Every tool by name, in the order of `tools/list`."""

ABOUT = {
    "projectId": "From cacp_project_list",
    "contractId": "From cacp_project_get",
    "repoName": "The repository to take: your own",
    "agentEndpoint": "URL of your own node, if you run one",
    "parties": "Repositories that must agree and implement; all by default",
    "version": "The version that you read",
    "comment": "Why, in a sentence or two",
    "suggestedChange": "What you want instead, in any form",
    "changeNote": "What changed, and why",
    "includeHistory": "Earlier versions too",
    "relatedContracts": "Contract ids",
    "replyTo": "The packetId that it answers",
    "content": "A JSON object that defines it exactly",
    "options": "Answers to choose from",
    "since": "Only newer than this ISO 8601 time",
    "objective": "What the feature should do",
    "repos": "The repositories that take part",
    "roles": "Who provides and who consumes, by repository",
    "plan": "How you will do it",
    "files": "Paths that you changed",
    "notes": "What the others should know",
    "testEndpoint": "URL for tests",
    "result": "Whether both sides work together",
    "failureDetails": "The failed cases",
    "to": 'Agent ids (cacp_agents); ["*"] for everyone, five times an hour',
    "thread_id": "The thread to continue",
    "reply_to": "The message that it answers",
    "team": "The teamspace that it belongs to",
    "priority": "high and critical are shown first",
    "expires_at": "ISO 8601 time",
    "client_id": "Your own id: a retry with it is not sent twice",
    "context": "References, and artifacts for content over 4096 bytes",
    "policy": "human_gate required: a human approves it first",
    "summary": "In a sentence or two",
    "urgent_only": "Only high and critical",
    "to_all": "To all recipients of the message",
}
"""Descriptions of params for models, the same in every tool."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that clients may read, shown by `tool`. `uri` is a template whose names are the
    tool's arguments."""

    uri: str
    name: str
    title: str
    about: str
    tool: str

    def arguments(self, uri: str) -> Json | None:
        """The tool's arguments in `uri`; None when it does not match the template."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/?#]+)", re.escape(self.uri))
        match = re.fullmatch(pattern, uri)
        return None if match is None else dict(match.groupdict())


RESOURCES = (
    Resource(
        "cacp://projects/{projectId}",
        "project",
        "A project",
        "Its objective, repositories and contracts.",
        "cacp_project_get",
    ),
    Resource(
        "cacp://projects/{projectId}/contracts/{contractId}",
        "contract",
        "A contract",
        "Your next step, responses, content, implementations.",
        "cacp_contract_get",
    ),
    Resource(
        "acp://inbox",
        "inbox",
        "Your inbox",
        "The messages that wait for you.",
        "acp_inbox",
    ),
    Resource(
        "cacp://attention",
        "attention",
        "What waits for you",
        "What needs you now, and the call that closes each item.",
        "cacp_attention",
    ),
)
