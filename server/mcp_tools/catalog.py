"""The MCP tools: a table over the JSON-RPC methods. No SDK in here, and no network.

A tool is a method with words for a model: one call of it is one call of the method, through the
same door, so that authority, validation and limits are the same. Its input schema is made from the
method's params. What it answers is text: the node's own words at the margin, agents' text fenced
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
"""Calls a JSON-RPC method of a node and gives its result. Raises CallFailed."""


class CallFailed(Exception):
    """A call that gave no result; `data` as in the JSON-RPC error, if it came to one."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class UnknownTool(Exception):
    """There is no tool of this name."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `steps` are the methods by the value of the argument `chooser`; a tool for one
    method has no chooser, and the one step "". `fixed` are params that it sets itself, and
    `left_out` those that it keeps from models."""

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
    """What a param means in this tool, where that is not what `ABOUT` says."""

    def method(self, given: Json) -> str:
        """The method that these arguments ask for. Raises CallFailed."""
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
        asked = {name: value for name, value in given.items() if name != self.chooser}
        return {**asked, **self.fixed}


_TYPES = [type for type in PAYLOADS if not type.startswith("handoff.")]
"""The types of message for agents to send; handoffs have a tool of their own."""

_NOT_FOR_MODELS = frozenset({"protocol", "version", "sequence"})
"""What the node fills in better than a model, in a message."""

_IN_ALL = ("summary", "details")
_PAYLOADS = "By type, besides summary and details: " + "; ".join(
    f"{type} {', '.join(wanted)}"
    for type in _TYPES
    if (wanted := [name for name in PAYLOADS[type].model_fields if name not in _IN_ALL])
)


def _actions(needed: Mapping[Any, tuple[str, ...]]) -> str:
    """What each action of a method needs besides, in a line."""
    wanted = (f"{name} ({', '.join(params)})" for name, params in needed.items() if params)
    return f"With what each needs: {'; '.join(wanted)}"


_TABLE = (
    Tool(
        "cacp_project_create",
        "Create a project",
        "Create a project: one feature that spans repositories. Name the repositories that take "
        "part. Then cacp_project_join takes your own.",
        {"": "cacp/project/create"},
    ),
    Tool(
        "cacp_project_list",
        "List projects",
        "List the projects of this node with their ids. Start here without a projectId.",
        {"": "cacp/project/list"},
        render.projects,
        reads=True,
        fixed={"summary": True},
        left_out=frozenset({"summary"}),
    ),
    Tool(
        "cacp_project_get",
        "Look at a project",
        "Show a project: its objective, repositories and who holds each, contracts and their "
        "status. cacp_contract_get shows a contract's content.",
        {"": "cacp/project/get"},
        render.project,
        reads=True,
        fixed={"summary": True},
        left_out=frozenset({"summary"}),
    ),
    Tool(
        "cacp_project_join",
        "Join a project",
        "Take a repository of a project as yours. Do so before you propose, respond, share or "
        "implement there. Joining again changes nothing.",
        {"": "cacp/project/join"},
        idempotent=True,
    ),
    Tool(
        "cacp_contract_propose",
        "Propose a contract",
        "Propose an interface between repositories (an endpoint, an event, a data model): content "
        "is any JSON object that says it exactly. Another party must agree before it holds.",
        {"": "cacp/contract/propose"},
    ),
    Tool(
        "cacp_contract_respond",
        "Respond to a contract",
        "Agree to a contract that another party proposed, ask for a change (say which in comment), "
        "or reject it. Read it with cacp_contract_get first, and give the version you read.",
        {"": "cacp/contract/respond"},
        render.response,
        idempotent=True,
    ),
    Tool(
        "cacp_contract_update",
        "Write a new version of a contract",
        "Put a new version of a contract on the table: the whole content, not a difference. It "
        "voids earlier agreement. Give the version you read; it is refused when that is outdated.",
        {"": "cacp/contract/update"},
    ),
    Tool(
        "cacp_contract_get",
        "Read a contract",
        "Show a contract: status, version, content, and how far each party has implemented it.",
        {"": "cacp/contract/get"},
        render.contract,
        reads=True,
    ),
    Tool(
        "cacp_context_share",
        "Share context",
        "Tell the other agents of a project something they need: code, types, an API's errors, "
        "an environment, or the answer to a question (replyTo its packet id).",
        {"": "cacp/context/share"},
    ),
    Tool(
        "cacp_context_ask",
        "Ask the project",
        "Ask the other agents of a project a question. Look for the answer with cacp_context_list.",
        {"": "cacp/context/askQuestion"},
    ),
    Tool(
        "cacp_context_list",
        "Read shared context",
        "Show what agents shared with a project, oldest first: questions, answers, decisions, "
        "code. Narrow it by type, contract or time.",
        {"": "cacp/context/list"},
        render.packets,
        reads=True,
    ),
    Tool(
        "cacp_implementation_report",
        "Report on an implementation",
        "Report your work on an agreed contract. start: you begin, with a plan. complete: your "
        "side is done, with its files. verify: you tested both sides together, with the result.",
        {
            "start": "cacp/implementation/start",
            "complete": "cacp/implementation/complete",
            "verify": "cacp/implementation/verify",
        },
        chooser="step",
        idempotent=True,
    ),
    Tool(
        "acp_send",
        "Send a message",
        "Send a durable message to other agents: it waits for who is asleep. Direct sends are "
        "limited to some ten a minute, so say it in one. Read answers with acp_inbox.",
        {"": "acp/send"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS,
        about={"type": f"One of {', '.join(_TYPES)}", "payload": _PAYLOADS},
    ),
    Tool(
        "acp_respond",
        "Answer a message",
        "Answer a message that came to you: the answer goes to its sender, in its thread.",
        {"": "acp/respond"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS,
        about={
            "message_id": "The message that you answer",
            "type": f"One of {', '.join(_TYPES)}",
            "payload": _PAYLOADS,
        },
    ),
    Tool(
        "acp_inbox",
        "Read your mail",
        "Show the messages that wait for you. Reading takes none away: give the ids of those you "
        "have dealt with in ack. With wait, it answers as soon as something comes.",
        {"": "acp/inbox"},
        render_acp.mail,
        idempotent=True,
        fixed={"format": "markdown"},
        left_out=frozenset({"format"}),
        about={
            "cursor": "Where to go on; leave it out to see all that you have not acknowledged",
            "wait": "Seconds to wait for mail when there is none",
            "ack": "Ids of messages that you have dealt with",
            "show": "all: also those that you have acknowledged",
        },
    ),
    Tool(
        "acp_query",
        "Look for messages",
        "Look for messages that you sent or got, newest first, and see how far each has come: "
        "delivered or read.",
        {"": "acp/query"},
        render_acp.found_messages,
        reads=True,
        about={"agent": "Only with this agent", "since": "Only from this ISO 8601 time on"},
    ),
    Tool(
        "acp_status",
        "Tell your status",
        "Tell others how your work stands: an update, that you are blocked (say by what in "
        "blocked_on), or that it is complete.",
        {"": "acp/status"},
        render_acp.sent,
        left_out=_NOT_FOR_MODELS | {"context", "policy", "expires_at"},
    ),
    Tool(
        "acp_handoff",
        "Hand work on",
        "Hand a task to another agent with all it needs, or take one over. The sender initiates; "
        "the receiver reads it (get), accepts or rejects, then completes; the sender closes. "
        "A handoff that waits for you is announced in acp_inbox.",
        {"": "acp/handoff"},
        render_acp.handoff,
        left_out=frozenset({"session_key"}),
        about={
            "action": _actions(handoff.NEEDED),
            "to": "The agent that is to take the task over",
            "package": "The task and all that its next owner must know",
            "detail": "Why, for the other side to read",
            "summary": "What was done",
            "code": "The reason for a rejection",
            "package_hash": "That of the package that you read: another one is then refused",
            "node": "The node that holds it, if known from elsewhere than mail",
        },
    ),
    Tool(
        "acp_team",
        "Work in a teamspace",
        "Create a teamspace, see who is in it and which tasks it has, and change them, as far as "
        "your role there may. Roles: coordinator, researcher, executor, reviewer, integrator.",
        {"": "acp/team"},
        render_acp.team,
        about={
            "action": _actions(teamspace.NEEDED),
            "team": "The teamspace's id: lower-case letters, digits and hyphens",
            "cursor": "Where to go on",
        },
    ),
)

TOOLS: dict[str, Tool] = {tool.name: tool for tool in _TABLE}
"""Every tool by name, in the order in which they are listed."""

ABOUT = {
    "projectId": "The project's id, as cacp_project_list shows it",
    "contractId": "The contract's id, as cacp_project_get shows it",
    "repoName": "The repository to take: your own",
    "agentEndpoint": "URL of your own node, if you run one; leave it out otherwise",
    "parties": "Names of the repositories that must agree and implement; all by default",
    "version": "The version that you read",
    "comment": "Why, in a sentence or two",
    "suggestedChange": "What it should be instead, in any form",
    "changeNote": "What changed, and why",
    "includeHistory": "Also show earlier versions",
    "relatedContracts": "Ids of contracts that it concerns",
    "replyTo": "Id of the packet that it answers",
    "content": "A JSON object that says it exactly",
    "options": "Answers to choose from",
    "since": "Only what is newer than this ISO 8601 time",
    "cursor": "Where to go on, as shown",
    "limit": "How many at most",
    "objective": "What the feature should do, in a few sentences",
    "repos": "The repositories that take part, with role (backend, frontend, …) and language",
    "plan": "How you will do it",
    "files": "Paths that you changed",
    "notes": "What the others should know",
    "testEndpoint": "URL at which the others can try it",
    "result": "Whether both sides work together",
    "to": 'Ids of the agents it goes to; ["*"] for everyone, which is limited to some five an hour',
    "topic": "A subject, in a few words",
    "thread_id": "The thread that it belongs to; a new one when left out",
    "reply_to": "Id of the message that it answers",
    "team": "The teamspace that it belongs to",
    "priority": "high and critical also wake agents, where that is on",
    "expires_at": "ISO 8601 time after which it needs not be read",
    "client_id": "Your own id for it: sent again with the same one, it is sent once",
    "context": "References, and artifacts for what is over 4096 bytes",
    "policy": "human_gate required: a human approves it first",
    "summary": "What it comes to, in a sentence or two",
    "details": "Anything else, as a JSON object",
    "agent_id": "The agent that it is about",
    "to_all": "To all who got the message, not only its sender",
}
"""What a param means, for models; the same in every tool."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What clients may read by address; the tool of its kind shows it. `uri` is a template whose
    names are the tool's arguments."""

    uri: str
    name: str
    title: str
    about: str
    tool: str

    def arguments(self, uri: str) -> Json | None:
        """The tool's arguments, when `uri` is one of these."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/?#]+)", re.escape(self.uri))
        match = re.fullmatch(pattern, uri)
        return None if match is None else dict(match.groupdict())


RESOURCES = (
    Resource(
        "cacp://projects/{projectId}",
        "project",
        "A project",
        "Its objective, repositories and contracts, in short.",
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


# --- what a client is told of a tool ------------------------------------------------------------


def input_schema(tool: Tool) -> Json:
    """The arguments as one JSON object schema, whole in itself: clients differ in what they make of
    `$ref`, `anyOf` and `null`, so none of these is used where it can be avoided."""
    schemas = {step: _params_schema(method) for step, method in tool.steps.items()}
    takes: dict[str, list[str]] = {}
    properties: Json = {}
    for step, schema in schemas.items():
        for name, member in schema["properties"].items():
            if name not in tool.left_out:
                takes.setdefault(name, []).append(step)
                properties.setdefault(name, dict(member))
    for name, member in properties.items():
        about = tool.about.get(name, ABOUT.get(name, ""))
        only = "" if len(takes[name]) == len(schemas) else f" (for {', '.join(takes[name])})"
        if about or only:
            member["description"] = f"{about}{only}".strip()
    required = [
        name
        for name in properties
        if all(name in schema.get("required", ()) for schema in schemas.values())
    ]
    # What is needed stands first: models read from the top.
    properties = {name: properties[name] for name in dict.fromkeys([*required, *properties])}
    if tool.chooser:
        chooser = {"type": "string", "enum": [*tool.steps], "description": "What to report"}
        properties = {tool.chooser: chooser, **properties}
        required = [tool.chooser, *required]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _params_schema(method: str) -> Json:
    schema = METHODS[method].params.model_json_schema(by_alias=True)
    plain: Json = _plain(schema, schema.get("$defs", {}))
    return {"properties": {}, **plain}


_LEFT_OUT = frozenset(
    {"$defs", "title", "description", "additionalProperties"}
    | {"minLength", "maxLength", "minItems", "maxItems", "pattern", "not", "if", "then"}
)
"""What a model needs not read of a schema: the node's refusals say it where it matters."""


def _plain(schema: Any, defined: Json) -> Any:
    """A schema without references, titles, and the null that means absent."""
    if isinstance(schema, list):
        return [_plain(one, defined) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(defined[schema["$ref"].rpartition("/")[2]], defined)
    kinds = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(kinds) == 1:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return _plain({**kinds[0], **rest}, defined)
    made: Json = {}
    for name, value in schema.items():
        if name in _LEFT_OUT or (name == "default" and value in (None, [])):
            continue
        if name == "properties":
            made[name] = {one: _plain(member, defined) for one, member in value.items()}
        else:
            made[name] = _plain(value, defined)
    return made


# --- a call -------------------------------------------------------------------------------------


async def run(name: str, given: Json, call: Call) -> str:
    """What a tool answers. Raises UnknownTool, and CallFailed, which `problem` puts into words."""
    tool = TOOLS.get(name)
    if tool is None:
        raise UnknownTool(f"There is no tool {one_line(name, 80)}; tools/list names them")
    params = tool.params(given)
    result = await call(tool.method(given), params)
    return tool.show(params, result)


NEXT = {
    "invalid_params": "Mend the arguments and call again.",
    "not_found": "cacp_project_list shows the projects, cacp_project_get what is in one.",
    "illegal_transition": "cacp_contract_get shows where it stands.",
    "not_a_member": "Then call again.",
    "conflict": "Read what is there now, then decide again.",
    "rate_limited": "Wait, then call again.",
    "answer_too_large": "Ask for less: a smaller limit, or one thing at a time.",
    "insufficient_trust": "Your operator must give you a verified key.",
    "unreachable": "Tell your user, and go on without it for now; nothing was changed.",
}
"""What to do next, by the error's `data.reason`."""

_METHOD = re.compile("|".join(map(re.escape, sorted(METHODS, key=len, reverse=True))))


def problem(failed: CallFailed) -> str:
    """An error in words that tell a model what to do next."""
    data = failed.data if isinstance(failed.data, dict) else {}
    said = one_line(_METHOD.sub(_tool_of, failed.message), 1_000)
    next_step = NEXT.get(str(data.get("reason", "")), "")
    after = data.get("retryAfter")
    if isinstance(after, int | float):
        next_step = f"Wait {after} seconds, then call again."
    ended = said if said.endswith((".", "!", "?")) else f"{said}."
    return f"{ended} {next_step}".strip()


def _tool_of(match: re.Match[str]) -> str:
    """The tool for a method, so that an error speaks of what the model can call."""
    return next((tool.name for tool in _TABLE if match[0] in tool.steps.values()), match[0])
