"""Explains a test in words: what it verifies, what it needs, and each step."""

from collections.abc import Iterator

from pydantic import JsonValue

from comply.files import Case
from comply.record import expected_of
from comply.template import names, text_of
from schemas.jsont import ComplianceTest, Expect, ExpectedMessage, Forbid, JsontStep


def explain(case: Case) -> str:
    test = case.test
    lines = [f"{case.suite}/{case.id}: {test.title}", "", test.description, ""]
    lines += [*_setting(test), ""]
    if test.setup is not None:
        lines += [f"Steps 1 to {case.setup_count} are the set-up {test.setup}.", ""]
    for number, step in enumerate(test.steps, 1):
        first, *rest = _said(step)
        lines.append(f"{number:2}. {first}")
        lines += [f"    {line}" for line in rest]
    return "\n".join(lines)


def _setting(test: ComplianceTest) -> Iterator[str]:
    """Lines about the whole test."""
    yield f"Severity: {test.severity}. Transport: {test.transport}."
    if test.transport == "stdio":
        version = test.protocol_version
        yield f"Version {version} of the protocol; each message of the agent is held to its schema."
    yield from (f"Clause: {link}" for link in test.docs)
    for condition in test.preconditions:
        if condition.setting is not None:
            yield f"NA unless {condition.setting} is set for the agent."
            continue
        what = condition.agent_cap or condition.cap or condition.method
        wanted = f"unless {what} is {text_of(condition.must_be)}"
        yield f"NA {wanted}." if what else f"NA: asks for {condition.foreign}."
    if test.init.client_capabilities is not None:
        yield f"The client offers {_json(test.init.client_capabilities)}, else the usual."
    if "permission_policy" in test.init.model_fields_set:
        yield f"Permissions: {test.init.permission_policy}."
    for file in test.sandbox.files:
        content = _json(file.text or "") if file.base64 is None else f"base64 {file.base64}"
        yield f"Sandbox: {file.path} holds {content}"


def _said(step: JsontStep) -> Iterator[str]:
    who = "" if step.caller == "first" else f" as {step.caller}"
    where = "" if step.to == "node" else " to the peer"
    added = f" with the headers {_json(dict(step.headers))}" if step.headers else ""
    if step.send is not None:
        frame = {name: item for name, item in step.send.items() if name != "expectError"}
        yield f"send{who}{where}{added} {_json(frame)}"
        if step.send.get("expectError") is True:
            yield "which must be answered by an error"
    elif step.request is not None:
        body = step.request.text if step.request.text is not None else step.request.body
        shown = "" if body is None else f" {_json(body)}"
        yield f"{step.request.method} {step.request.path}{who}{where}{added}{shown}"
    elif step.run is not None:
        yield f"run the command on {_json(step.run.stdin)}"
    elif step.new_session is not None:
        servers = step.new_session.mcp_servers
        given = f" with the MCP servers {_json(servers)}" if servers else ""
        yield f"open a session in the sandbox{given}, as ${{{step.new_session.capture}}}"
    elif step.forbid is not None:
        yield from _forbidden(step.forbid)
    elif step.expect is not None:
        yield from _expected(step.expect)
    else:
        yield f"wait {_number(step.delay_ms or 0)} ms"


def _expected(window: Expect) -> Iterator[str]:
    asking = window.na_unless is not None or window.na_if is not None
    verb = "look for" if asking else "expect"
    fresh = ", after the latest step alone," if window.fresh else ","
    again = " asking again until it comes," if window.retry else ""
    yield f"within {_number(window.timeout_ms)} ms{fresh}{again} {verb}"
    for message in window.messages:
        yield from _message(message)
    for capture in window.captures:
        yield f"keep {capture.path} as ${{{capture.var}}}"
    if window.na_unless is not None:
        yield f"NA when none of it comes: {window.na_unless}"
    if window.na_if is not None:
        yield f"NA when any of it comes: {window.na_if}"


def _message(message: ExpectedMessage) -> Iterator[str]:
    kind, partial = expected_of(message)
    yield f"{kind} {_json(partial)}"
    request = message.client_request or {}
    if "reply" in message.model_fields_set or "reply" in request:
        reply = message.reply if "reply" in message.model_fields_set else request["reply"]
        when = " after the next step" if message.late else ""
        yield f"answered{when} with {_json(reply)}"


def _forbidden(window: Forbid) -> Iterator[str]:
    unwanted = [*window.methods, *(["lines that are not messages"] if window.stray_lines else [])]
    forbidden = f"none of {', '.join(unwanted)}" if unwanted else "none of"
    since = ", since the test began," if window.from_start else ","
    yield f"for {_number(window.timeout_ms)} ms{since} {forbidden}"
    for message in window.messages:
        yield from _message(message)


def _number(milliseconds: float) -> str:
    return f"{milliseconds:g}"


def _json(value: JsonValue) -> str:
    text = text_of(value)
    for name in names(value):
        text = text.replace(f'"\ue000{name}"', f"${{{name}}}").replace(
            f"\ue000{name}", f"${{{name}}}"
        )
    return text
