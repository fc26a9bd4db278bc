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
from schemas.plain import one_line
from server.mcp_tools import render, render_acp
from server.methods import METHODS

Json = dict[str, Any]
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

    def method(self, given: Json) -> str:
        """The method that these arguments choose. Raises CallFailed."""
        if not self.chooser:
            return self.steps[""]
        step = given.get(self.chooser)
        if not isinstance(step, str) or step not in self.steps:
            raise CallFailed(
                f"{self.chooser} should be one of {', '.join(self.steps)}",
                {"reason": "invalid_params"},
            )
        return self.steps[step]

    def params(self, given: Json) -> Json:
        """The method's params for these arguments."""
        chosen = {name: value for name, value in given.items() if name != self.chooser}
        return {**chosen, **self.fixed}


_TYPES = [type for type in PAYLOADS if not type.startswith("handoff.")]
"""The message types that agents send; handoffs have their own tool."""

_NOT_FOR_MODELS = frozenset({"protocol", "version", "sequence"})
"""Members of a message that the node fills in."""

_IN_ALL = ("summary", "details")
_PAYLOADS = "Besides summary and details, by type: " + "; ".join(
    f"{type} {', '.join(wanted)}"
    for type in _TYPES
    if (wanted := [name for name in PAYLOADS[type].model_fields if name not in _IN_ALL])
)


def _actions(needed: Mapping[Any, tuple[str, ...]]) -> str:
    """The required params of each action, in a line."""
    actions = (f"{name} ({', '.join(params)})" for name, params in needed.items() if params)
    return f"Required params by action: {'; '.join(actions)}"


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
        "Create a project: one feature across several repositories. List the repositories that "
        "take part, then take your own with cacp_project_join.",
        {"": "cacp/project/create"},
    ),
    McpTool(
        "cacp_project_list",
        "List projects",
        "List the projects on this node with their ids. Start here if you have no projectId.",
        {"": "cacp/project/list"},
        render.projects,
        reads=True,
        fixed={"summary": True},
        left_out=frozenset({"summary"}),
    ),
    McpTool(
        "cacp_project_get",
        "Show a project",
        "Show a project: its objective, repositories and their holders, contracts and their "
        "status. cacp_contract_get shows a contract's content.",
        {"": "cacp/project/get"},
        render.project,
        reads=True,
        fixed={"summary": True},
        left_out=frozenset({"summary"}),
    ),
    McpTool(
        "cacp_project_join",
        "Join a project",
        "Take a repository of a project as yours. Do this before you propose, respond, share or "
        "implement there. Joining again changes nothing.",
        {"": "cacp/project/join"},
        idempotent=True,
    ),
    McpTool(
        "cacp_contract_propose",
        "Propose a contract",
        "Propose an interface between repositories (an endpoint, an event, a data model): content "
        "is a JSON object that defines it exactly. It is agreed once another party agrees.",
        {"": "cacp/contract/propose"},
    ),
    McpTool(
        "cacp_contract_respond",
        "Respond to a contract",
        "Agree to a contract that another party proposed, request a change (say which in comment), "
        "or reject it. Read it with cacp_contract_get first, and pass the version you read.",
        {"": "cacp/contract/respond"},
        render.response,
        idempotent=True,
    ),
    McpTool(
        "cacp_contract_update",
        "Write a new version of a contract",
        "Propose a new version of a contract: the whole content, not a diff. This voids earlier "
        "agreement. Pass the version you read: an outdated one is refused.",
        {"": "cacp/contract/update"},
    ),
    McpTool(
        "cacp_contract_get",
        "Read a contract",
        "Show a contract: status, version, content, and each party's implementation status.",
        {"": "cacp/contract/get"},
        render.contract,
        reads=True,
    ),
    McpTool(
        "cacp_context_share",
        "Share context",
        "Share context that the other agents of a project need: code, types, an API's errors, an "
        "environment, or the answer to a question (replyTo is its packetId).",
        {"": "cacp/context/share"},
    ),
    McpTool(
        "cacp_context_ask",
        "Ask the project",
        "Ask the other agents of a project a question. Look for the answer with cacp_context_list.",
        {"": "cacp/context/askQuestion"},
    ),
    McpTool(
        "cacp_context_list",
        "Read shared context",
        "List the context shared in a project, oldest first: questions, answers, decisions, code. "
        "Filter by type, contract or time.",
        {"": "cacp/context/list"},
        render.packets,
        reads=True,
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
    ),
    McpTool(
        "acp_send",
        "Send a message",
        "Send a durable message to other agents: it waits until they read it. You may send about "
        "ten direct messages a minute, so put everything into one. Read replies with acp_inbox.",
        {"": "acp/send"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS,
        about={"type": f"One of {', '.join(_TYPES)}", "payload": _PAYLOADS},
    ),
    McpTool(
        "acp_respond",
        "Reply to a message",
        "Reply to a message that you received. The reply goes to its sender, in the same thread.",
        {"": "acp/respond"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS,
        about={
            "message_id": "The id of the message that you reply to",
            "type": f"One of {', '.join(_TYPES)}",
            "payload": _PAYLOADS,
        },
    ),
    McpTool(
        "acp_inbox",
        "Read your mail",
        "Show the messages that wait for you. Reading does not remove them: pass the ids of those "
        "you have handled in ack. With wait, the call returns as soon as a message arrives.",
        {"": "acp/inbox"},
        render_acp.mail,
        idempotent=True,
        fixed={"format": "markdown"},
        left_out=frozenset({"format"}),
        about={
            "cursor": "The cursor shown last; leave it out for all unacknowledged messages",
            "wait": "Seconds to wait for a message when there is none",
            "ack": "Ids of messages that you have handled",
            "show": "all: show acknowledged messages too",
        },
    ),
    McpTool(
        "acp_query",
        "Search messages",
        "Search the messages that you sent or received, newest first, with the delivery status of "
        "each.",
        {"": "acp/query"},
        render_acp.found_messages,
        reads=True,
        about={
            "agent": "Only messages to or from this agent",
            "since": "Only messages from this ISO 8601 time on",
        },
    ),
    McpTool(
        "acp_status",
        "Report your status",
        "Report the status of your work to others: an update, blocked (say by what in blocked_on), "
        "or complete.",
        {"": "acp/status"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS | {"context", "policy", "expires_at"},
    ),
    McpTool(
        "acp_handoff",
        "Hand over work",
        "Hand over a task to another agent with all it needs, or take one over. The sender "
        "initiates; the receiver reads it (get), accepts or rejects, then completes; the sender "
        "closes. A handoff that waits for you is announced in acp_inbox.",
        {"": "acp/handoff"},
        render_acp.handoff,
        left_out=frozenset({"session_key"}),
        about={
            "action": _actions(handoff.NEEDED),
            "to": "The agent that should take over the task",
            "package": "The task and all that its next owner must know",
            "detail": "The reason, for the other side to read",
            "summary": "What was done",
            "code": "The reason for a rejection",
            "package_hash": "The hash of the package that you read; a changed package is refused",
            "node": "The node that holds the handoff; needed if it was not announced in acp_inbox",
        },
    ),
    McpTool(
        "acp_team",
        "Work in a teamspace",
        "Create a teamspace, list its members and tasks, and change them as far as your role there "
        "allows. Roles: coordinator, researcher, executor, reviewer, integrator.",
        {"": "acp/team"},
        render_acp.team,
        about={
            "action": _actions(teamspace.NEEDED),
            "team": "The teamspace's id: lower-case letters, digits and hyphens",
            "cursor": "The cursor shown last",
        },
    ),
)

TOOLS: dict[str, McpTool] = {tool.name: tool for tool in _TABLE}
"""Every tool by name, in the order of `tools/list`."""

ABOUT = {
    "projectId": "The project's id, as cacp_project_list shows it",
    "contractId": "The contract's id, as cacp_project_get shows it",
    "repoName": "The repository to take: your own",
    "agentEndpoint": "URL of your own node; leave it out if you run none",
    "parties": "Names of the repositories that must agree and implement; all by default",
    "version": "The version that you read",
    "comment": "Why, in a sentence or two",
    "suggestedChange": "What you want instead, in any form",
    "changeNote": "What changed, and why",
    "includeHistory": "Also show earlier versions",
    "relatedContracts": "Ids of related contracts",
    "replyTo": "Id of the packet that it answers",
    "content": "A JSON object that defines it exactly",
    "options": "Answers to choose from",
    "since": "Only packets newer than this ISO 8601 time",
    "cursor": "The cursor shown last",
    "limit": "Entries, at most",
    "objective": "What the feature should do, in a few sentences",
    "repos": "The repositories that take part, with role (backend, frontend, …) and language",
    "plan": "How you will do it",
    "files": "Paths that you changed",
    "notes": "What the other agents should know",
    "testEndpoint": "URL at which the other agents can test it",
    "result": "Whether both sides work together",
    "to": 'Ids of the recipients; ["*"] for everyone, about five times an hour',
    "topic": "A subject, in a few words",
    "thread_id": "The thread to continue; a new one if left out",
    "reply_to": "Id of the message that it answers",
    "team": "The teamspace that it belongs to",
    "priority": "high and critical also wake agents, where that is on",
    "expires_at": "ISO 8601 time at which it becomes obsolete",
    "client_id": "Your own id for the message: a retry with the same id is not sent twice",
    "context": "References, and artifacts for content over 4096 bytes",
    "policy": "human_gate required: a human must approve the message first",
    "summary": "A summary, in a sentence or two",
    "details": "Anything else, as a JSON object",
    "agent_id": "The agent that this is about",
    "to_all": "Reply to all recipients of the message, not only its sender",
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
        "Its status, content and implementations.",
        "cacp_contract_get",
    ),
    Resource(
        "acp://inbox",
        "inbox",
        "Your inbox",
        "The messages that wait for you.",
        "acp_inbox",
    ),
)


# --- a call -------------------------------------------------------------------------------------


async def run(name: str, given: Json, call: Call) -> str:
    """The text of a tool's result. Raises UnknownTool, and CallFailed, which `problem` explains."""
    tool = TOOLS.get(name)
    if tool is None:
        raise UnknownTool(f"{one_line(name, 80)} is not a tool; tools/list names them")
    params = tool.params(given)
    result = await call(tool.method(given), params)
    return tool.show(params, result)


NEXT = {
    "invalid_params": "Correct the arguments and call again.",
    "not_found": "cacp_project_list shows the projects, cacp_project_get the contents of one.",
    "illegal_transition": "cacp_contract_get shows its status.",
    "not_a_member": "Then call again.",
    "conflict": "Read the current version, then decide again.",
    "rate_limited": "Wait, then call again.",
    "answer_too_large": "Ask for less: a smaller limit, or one thing at a time.",
    "insufficient_trust": "Your operator must give you a verified key.",
    "unreachable": "Tell your user, and continue without it for now; nothing was changed.",
}
"""What a model should do next, by the error's `data.reason`."""

_METHOD = re.compile("|".join(map(re.escape, sorted(METHODS, key=len, reverse=True))))


def problem(failed: CallFailed) -> str:
    """An error, and what a model should do next."""
    data = failed.data if isinstance(failed.data, dict) else {}
    message = one_line(_METHOD.sub(_tool_of, failed.message), 1_000)
    next_step = NEXT.get(str(data.get("reason", "")), "")
    after = data.get("retryAfter")
    if isinstance(after, int | float):
        next_step = f"Wait {after} seconds, then call again."
    sentence = message if message.endswith((".", "!", "?")) else f"{message}."
    return f"{sentence} {next_step}".strip()


def _tool_of(match: re.Match[str]) -> str:
    """The tool for a method, so that an error names what the model can call."""
    return next((tool.name for tool in _TABLE if match[0] in tool.steps.values()), match[0])
