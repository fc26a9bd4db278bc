"""A call of a tool: its arguments checked, its method called, its answer bounded; and what a model
should do after a refusal."""

import difflib
import re
from functools import cache
from typing import Any

from schemas.plain import one_line
from server.domain.invalid import listed
from server.domain.next_call import next_call
from server.mcp_tools.catalog import MORE, TOOLS, Call, CallFailed, Json, McpTool, UnknownTool
from server.mcp_tools.input_schema import input_schema
from server.mcp_tools.pages import NOTE_MAX, PAGE_MAX, InvalidMark, page
from server.methods import METHODS


async def run(name: str, given: Json, call: Call) -> str:
    """The text of a tool's result, at most PAGE_MAX characters. Raises UnknownTool, and CallFailed,
    which `problem` explains."""
    tool = TOOLS.get(name)
    if tool is None:
        raise UnknownTool(f"{one_line(name, 80)} is not a tool; tools/list names them")
    _check(tool, given)
    mark = given.get(MORE)
    asked = {member: value for member, value in given.items() if member != MORE}
    if mark is not None and not tool.may_repeat(asked):
        raise _refused(f"{MORE}: only an answer that was cut has more; call without it")
    result = await call(tool.method(asked), tool.params(asked))
    return _bounded(tool, asked, result, mark)


def _bounded(tool: McpTool, asked: Json, result: Any, mark: Any) -> str:
    text = tool.show(asked, result)
    if mark is None and len(text) <= PAGE_MAX:
        return text
    try:
        shown = page(text, mark, PAGE_MAX - NOTE_MAX)
    except (InvalidMark, TypeError):
        raise _refused(f"{MORE}: should be the value that the answer before gave") from None
    if shown.mark is None:
        return shown.text
    if tool.may_repeat(asked):
        step = next_call(tool.name, asked | {MORE: shown.mark})
        if len(step) > NOTE_MAX - 200:
            step = f"{tool.name} with the same arguments and `{MORE}` `{shown.mark}`"
    else:
        step = tool.rest(asked, result)
    return f"{shown.text}\n\n[Cut: {len(text)} characters in all. The rest: {step}]"


def _check(tool: McpTool, given: Json) -> None:
    """Raises CallFailed for arguments that the tool does not have."""
    params = _params(tool.name)
    unknown = [name for name in given if name not in params and name not in tool.for_the_node]
    if not unknown:
        return
    name = unknown[0]
    like = difflib.get_close_matches(name, params, 1)
    meant = f" Did you mean {like[0]}?" if like else ""
    raise _refused(
        f"{one_line(name, 80)} is not a param of {tool.name}.{meant} It takes {listed(params)}"
    )


@cache
def _params(name: str) -> dict[str, bool]:
    """The params of a tool, and whether each is required."""
    schema = input_schema(TOOLS[name])
    return {param: param in schema["required"] for param in schema["properties"]}


def _refused(message: str) -> CallFailed:
    return CallFailed(message, {"reason": "invalid_params"})


# --- after a refusal ----------------------------------------------------------------------------


NEXT = {
    "invalid_params": "Correct the arguments and call again.",
    "schema_invalid": "Correct the arguments and call again.",
    "unknown_recipient": "cacp_agents lists the agents.",
    "not_found": "cacp_project_list shows the projects, cacp_project_get the contents of one.",
    "illegal_transition": "cacp_contract_get shows its status.",
    "not_a_member": "Then call again.",
    "conflict": "Read the current version, then decide again.",
    "rate_limited": "Wait, then call again.",
    "evidence_unchecked": "Then accept it. If you can't run commands, ask your user to.",
    "answer_too_large": "Ask for less: a smaller limit, or one thing at a time.",
    "insufficient_trust": "Your operator must give you a verified key.",
    "unreachable": "Tell your user, and continue without it for now; nothing was changed.",
    "unanswered": "It may be done: see with cacp_attention what still waits before you repeat it.",
}
"""What a model should do next, by the error's `data.reason`."""
MISSING = {
    "contract": "cacp_project_get lists the contracts of a project.",
    "packet": "cacp_context_list lists the newest.",
    "teamspace": "acp_team with action list shows yours.",
    "handoff": "acp_handoff with action list shows yours.",
    "message": "acp_query lists yours.",
    "agent": "cacp_agents lists the agents.",
}
"""What a model should do next, by what was not found (`data.kind`)."""

_METHOD = re.compile("|".join(map(re.escape, sorted(METHODS, key=len, reverse=True))))


def problem(failed: CallFailed) -> str:
    """An error, and what a model should do next."""
    data = failed.data if isinstance(failed.data, dict) else {}
    message = one_line(_METHOD.sub(_tool_of, failed.message), 1_000)
    next_step = NEXT.get(str(data.get("reason", "")), "")
    if data.get("reason") == "not_found":
        next_step = MISSING.get(str(data.get("kind", "")), next_step)
    after = data.get("retryAfter")
    if isinstance(after, int | float):
        next_step = f"Wait {after} seconds, then call again."
    sentence = message if message.endswith((".", "!", "?")) else f"{message}."
    return f"{sentence} {next_step}".strip()


def _tool_of(match: re.Match[str]) -> str:
    """The tool for a method, so that an error names what the model can call."""
    named = match[0].replace("/", "_")
    if named in TOOLS:
        return named
    return next((tool.name for tool in TOOLS.values() if match[0] in tool.steps.values()), match[0])
