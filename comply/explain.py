"""A test in words: what it verifies, and its steps one by one."""

from collections.abc import Iterator

from pydantic import JsonValue

from comply.files import Case
from comply.record import expected_of
from comply.template import names, text_of
from schemas.jsont import Step


def explain(case: Case) -> str:
    test = case.test
    lines = [f"{case.suite}/{case.id}: {test.title}", "", test.description, ""]
    lines.append(f"Severity: {test.severity}. Transport: {test.transport}.")
    lines += [f"Clause: {link}" for link in test.docs]
    for condition in test.preconditions:
        what = condition.agent_cap or condition.cap or condition.method
        lines.append(f"NA unless {what} is {text_of(condition.must_be)}.")
    lines += [f"Sandbox: {file.path}" for file in test.sandbox.files]
    lines.append("")
    for number, step in enumerate(test.steps, 1):
        first, *rest = _said(step)
        lines.append(f"{number:2}. {first}")
        lines += [f"    {line}" for line in rest]
    return "\n".join(lines)


def _said(step: Step) -> Iterator[str]:
    who = "" if step.caller == "first" else f" as {step.caller}"
    where = "" if step.to == "node" else " to the peer"
    if step.send is not None:
        yield f"send{who}{where} {_json(step.send)}"
    elif step.request is not None:
        body = step.request.text if step.request.text is not None else step.request.body
        shown = "" if body is None else f" {_json(body)}"
        yield f"{step.request.method} {step.request.path}{who}{where}{shown}"
    elif step.run is not None:
        yield f"run the command on {_json(step.run.stdin)}"
    elif step.new_session is not None:
        yield f"open a session in the sandbox, as ${{{step.new_session.capture}}}"
    elif step.forbid is not None:
        yield f"for {step.forbid.timeout_ms} ms, none of {', '.join(step.forbid.methods)}"
    elif step.expect is not None:
        yield f"within {step.expect.timeout_ms} ms, expect"
        for message in step.expect.messages:
            kind, partial = expected_of(message)
            yield f"{kind} {_json(partial)}"
        for capture in step.expect.captures:
            yield f"keep {capture.path} as ${{{capture.var}}}"
    else:
        yield f"wait {step.delay_ms} ms"


def _json(value: JsonValue) -> str:
    text = text_of(value)
    for name in names(value):
        text = text.replace(f'"\ue000{name}"', f"${{{name}}}")
    return text
