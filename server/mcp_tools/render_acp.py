"""Results of `acp/*` as short markdown for models; `render` has those of `cacp/*`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.handoff_evidence import STANDINGS
from server.domain import untrusted
from server.domain.next_call import next_call
from server.domain.untrusted import Author, block, block_of_json, inline

Json = dict[str, Any]

PROVED = "verified"
"""The trust label of senders: each authenticated with a key (acp-canonical §12.1), here or at the
node that vouches for it."""


def sent(params: Json, result: Json) -> str:
    """The delivery of a message: acp/send, acp/respond, acp/status."""
    message = result["message"]
    lines = [
        f"- messageId: `{message['id']}`",
        f"- thread_id: {inline(message.get('thread_id', '-'))}",
        f"- status: {message['status']}",
    ]
    if result["duplicate"]:
        lines.append("- duplicate: this client_id was sent before; nothing was sent again")
    if result.get("held"):
        lines.append(f"- held: {HELD[result['held']]}")
    for receipt in result["receipts"]:
        why = f" ({inline(receipt['error'])})" if receipt.get("error") else ""
        lines.append(f"- to {inline(receipt['recipient'])}: {receipt['status']}{why}")
    lines.append(_channels(result["capabilities"]))
    return "\n".join(lines)


HELD = {
    "gate": "a human must approve it first (`cacp approve`)",
    "quarantine": "its sequence is ahead of its thread; it is delivered when the gap is filled",
}


def mail(params: Json, result: Json) -> str:
    """acp/inbox: a line for each message, or the messages themselves with `bodies`."""
    vouchers = {entry["messageId"]: entry.get("vouchedBy") for entry in result["deliveries"]}
    messages = result["messages"]
    lines = [_messages(params, messages, vouchers, "Inbox", "No messages wait for you."), ""]
    counts = ", ".join(f"{count} {name}" for name, count in result["counts"].items())
    lines += [f"- your box: {counts}", f"- cursor: {inline(result['cursor'])}"]
    if result["more"]:
        lines.append("- more: call again with this cursor")
    if result["restarted"]:
        lines.append("- restarted: the cursor belongs to another database; this is the first page")
    lines += [
        f"- {inline(ack['messageId'])} is not acknowledged: {ack['outcome']}"
        for ack in result.get("acked", ())
        if ack["outcome"] not in ("read", "already")
    ]
    if messages:
        lines += _how_to_read(params, "acp_inbox", messages)
        lines.append("- When you have handled a message, pass its id in ack.")
    return "\n".join([*lines, _channels(result["capabilities"])])


def found_messages(params: Json, result: Json) -> str:
    """acp/query: as for acp/inbox, with the receipts."""
    entries = result["messages"]
    messages = [entry["message"] for entry in entries]
    vouchers = {entry["message"]["id"]: entry.get("vouchedBy") for entry in entries}
    nothing = "There are no such messages."
    parts = [_messages(params, messages, vouchers, "Found", nothing, steps=False)]
    receipts = [line for entry in entries for line in _receipts(params, entry)]
    if receipts:
        parts.append("\n".join(["# Receipts", "", *receipts]))
    if messages:
        parts += _how_to_read(params, "acp_query", messages)
    if result.get("nextCursor"):
        parts.append(f"More: cursor {inline(result['nextCursor'])}")
    return "\n\n".join(parts)


def _messages(
    params: Json,
    messages: list[Json],
    vouchers: Mapping[str, str | None],
    title: str,
    nothing: str,
    *,
    steps: bool = True,
) -> str:
    """`steps`: name the call that each message asks for, which may be done already."""
    authors = [_sender(message["from"], vouchers.get(message["id"])) for message in messages]
    if params.get("bodies") or not messages:
        return untrusted.inbox(messages, authors, title=title, nothing=nothing)
    lines = [
        f"{_header(place, message, author)}{_next_of(message) if steps else ''}"
        for place, (message, author) in enumerate(zip(messages, authors, strict=True), 1)
    ]
    return "\n".join([untrusted.heading(title, len(messages)), "", *lines])


def _header(place: int, message: Json, author: Author) -> str:
    """A message in a line."""
    voucher = f" (node {inline(author.node)})" if author.node else ""
    about = ": ".join(
        inline(text) for text in (message.get("topic"), message["payload"].get("summary")) if text
    )
    return (
        f"- {place}. {inline(message['type'])}, {message['priority']}, from "
        f"{inline(author.agent)}{voucher}: {about}; id `{message['id']}`, "
        f"sent {message['created_at']}"
    )


HANDOFF_STEPS = {"handoff.initiate": "get", "handoff.reject": "get", "handoff.complete": "close"}
"""The action that a message about a handoff asks for."""


def _next_of(message: Json) -> str:
    """The call that answers a message; empty if it needs none."""
    action = HANDOFF_STEPS.get(message["type"])
    handoff_id = message["payload"].get("handoff_id")
    if action is not None and handoff_id:
        given = {"action": action, "handoff_id": handoff_id}
        return f"; next: {next_call('acp_handoff', given)}"
    if message["type"] == "knowledge.query":
        answer = {"message_id": message["id"], "type": "knowledge.response"}
        return f"; next: {next_call('acp_respond', answer, {'payload': 'summary, answer'})}"
    return ""


def _how_to_read(params: Json, tool: str, messages: list[Json]) -> list[str]:
    if params.get("bodies"):
        return []
    first = next_call("acp_query", {"message_id": messages[0]["id"], "bodies": True})
    return [f"- The texts: {tool} with bodies true; of one message: {first}"]


RECEIPTS = 3
"""Recipients of a message that a list without bodies names."""


def _receipts(params: Json, entry: Json) -> list[str]:
    receipts, message_id = entry["receipts"], entry["message"]["id"]
    if params.get("bodies") or len(receipts) <= RECEIPTS:
        return [
            f"- `{message_id}` to {inline(receipt['recipient'])}: {receipt['status']}"
            for receipt in receipts
        ]
    states = Counter(receipt["status"] for receipt in receipts)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(states.items()))
    return [f"- `{message_id}` to {len(receipts)} agents: {counts}"]


def _sender(agent_id: str, vouched_by: str | None) -> Author:
    """The sender of a message, and the node that vouches for a remote one."""
    return Author(agent_id, vouched_by or "", "peer" if vouched_by else PROVED)


def _channels(capabilities: Json) -> str:
    """The state of each channel of this node (acp-canonical §10.4)."""
    states = ", ".join(f"{name} {state}" for name, state in capabilities.items())
    return f"- channels: {states}"


# --- handoffs and teamspaces --------------------------------------------------------------------


def handoff(params: Json, result: Json) -> str:
    """acp/handoff, whatever its action."""
    return "\n".join(_handoff(result))


def _handoff(result: Json) -> Iterator[str]:
    for summary in result.get("handoffs") or ():
        yield f"- {_handoff_line(summary)}"
    for remote in result.get("elsewhere") or ():
        yield (
            f"- handoff_id {inline(remote['handoffId'])}, held by {inline(remote['node'])}: "
            "get shows it"
        )
    if result.get("handoffs") == [] and not result.get("elsewhere"):
        yield "There are no such handoffs."
    if result.get("nextCursor"):
        yield f"More: cursor {inline(result['nextCursor'])}"
    about = result.get("handoff")
    if about is None:
        return
    yield f"# Handoff {inline(about['title'])}\n"
    yield f"- handoff_id: `{about['handoffId']}`"
    yield f"- status: {about['status']}"
    yield f"- task_id: {inline(about['taskId'])}"
    yield f"- from: {inline(about['fromAgent'])}"
    yield f"- to: {inline(about['toAgent'])}"
    yield f"- package_hash: `{about['packageHash']}`"
    for name in ("team", "dueAt", "resolvedAt"):
        if about.get(name):
            yield f"- {name}: {inline(about[name])}"
    if result.get("nextStep"):
        yield f"- next: {result['nextStep']}"
    sender = Author(about["fromAgent"], trust=PROVED)
    if result.get("package"):
        yield f"\n## Package\n\n{untrusted.WARNING}\n"
        yield block_of_json(result["package"], sender)
    if result.get("evidence"):
        yield from _evidence(result["evidence"])
    for check in result.get("artifacts") or ():
        outcome, detail = check["outcome"], inline(check["detail"])
        yield f"- artifact {inline(check['artifactId'])}: {outcome} ({detail})"
    if result.get("history"):
        yield "\n## History\n"
        for event in result["history"]:
            detail = f": {inline(event['detail'])}" if event.get("detail") else ""
            yield (
                f"- {event['recordedAt']} {event['step']} → {event['after']} "
                f"by {inline(event['actor'])} ({event['role']}){detail}"
            )


def _evidence(evidence: Json) -> Iterator[str]:
    yield f"- tests pass: {STANDINGS[evidence['standing']]}"
    if evidence["required"] and evidence.get("problem"):
        yield f"- you can't accept it yet: {evidence['problem']}"
    for run in evidence["commands"]:
        more = f" ({inline(run['detail'])})" if run.get("detail") else ""
        yield (
            f"- command {inline(run['command'], 300)} at `{run['commit'][:12]}`: "
            f"{run['outcome'].replace('_', ' ')}{more}"
        )
    for named in evidence["receipts"]:
        contract = inline(named.get("contract") or named["contractId"])
        yield f"- receipt of {contract}: {named['outcome']} ({inline(named['detail'], 300)})"
    if evidence.get("checkedBy"):
        yield f"- checked by {inline(evidence['checkedBy'])} at {evidence['checkedAt']}"


def _handoff_line(summary: Json) -> str:
    return (
        f"{inline(summary['title'])}: handoff_id `{summary['handoffId']}`, {summary['status']}, "
        f"from {inline(summary['fromAgent'])} to {inline(summary['toAgent'])}"
    )


def rest_of_message(asked: Json, result: Json) -> str:
    """The call that shows all receipts of a message."""
    return next_call("acp_query", {"message_id": result["message"]["id"], "bodies": True})


def rest_of_handoff(asked: Json, result: Json) -> str:
    """The call that shows a handoff whole."""
    handoff_id = result["handoff"]["handoffId"]
    return next_call("acp_handoff", {"action": "get", "handoff_id": handoff_id})


def rest_of_team(asked: Json, result: Json) -> str:
    """The call that shows a teamspace whole."""
    return next_call("acp_team", {"action": "get", "team": asked["team"]})


def team(params: Json, result: Json) -> str:
    """acp/team, whatever its action."""
    return "\n".join(_team(result)) or "Done."


def _team(result: Json) -> Iterator[str]:
    for item in result.get("teams") or ():
        name, role = inline(item["name"]), item["role"]
        yield f"- {name}: team `{item['team']}`, {item['status']}, your role: {role}"
    if result.get("teams") == []:
        yield "You are not a member of a teamspace."
    manifest = result.get("manifest")
    if manifest is not None:
        yield f"# Teamspace {inline(manifest['name'])}\n"
        yield f"- team: `{manifest['teamspace_id']}`"
        yield f"- status: {manifest['status']}"
        for member in manifest["members"]:
            yield f"- {member['role']}: {inline(member['agent_id'])}"
        if manifest["purpose"]:
            yield block(manifest["purpose"], Author(manifest["created_by"], trust=PROVED))
    tasks = [*(result.get("tasks") or ()), *([result["task"]] if result.get("task") else ())]
    for task in tasks:
        blocked = f", blocked: {inline(task['blockCode'])}" if task.get("blockCode") else ""
        owner = inline(task["owner"]) if task.get("owner") else "nobody yet"
        yield (
            f"- task {inline(task['taskId'])} {inline(task['title'])}: {task['kind']}, "
            f"{task['status']}, owned by {owner}{blocked}"
        )
    if result.get("lines"):
        lines = [line["line"] for line in result["lines"]]
        yield block_of_json(lines, Author("the teamspace's members", trust=PROVED))
    if result.get("nextCursor") is not None:
        yield f"More: cursor {result['nextCursor']}"
