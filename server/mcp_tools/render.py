"""Results of methods as short markdown for models. The node's own words are plain; agents' text is
in code spans and fences (`server.domain.untrusted`)."""

from collections.abc import Iterable, Iterator
from typing import Any

from schemas.context import ListContextParams
from schemas.verification import VERIFIED_BY
from server.domain.attention import text
from server.domain.next_call import next_call
from server.domain.untrusted import MEMBER, WARNING, Author, block, block_of_json, inline

Json = dict[str, Any]

PACKETS = ListContextParams.model_fields["limit"].default
"""The packets of a list without `limit`."""


def attention(params: Json, result: Json) -> str:
    """cacp/attention/list."""
    return text.markdown(result)


def facts(params: Json, result: Any) -> str:
    """The result of a change: a line for each member."""
    lines = [f"- {name}: {_value(value)}" for name, value in result.items() if value is not None]
    return "\n".join(lines)


def response(params: Json, result: Json) -> str:
    """cacp/contract/respond."""
    text = facts(params, result)
    if params["action"] == "agree" and result["status"] != "agreed":
        text += (
            "\n\nYour agreement is recorded, but the contract is not agreed yet: another party "
            "has requested a change or rejected it, or other parties must agree too. Do not "
            "build on it; cacp_contract_get shows its status."
        )
    return text


def version(params: Json, result: Json) -> str:
    """cacp/contract/propose and update."""
    roles = (f"{inline(repo)} {role}" for repo, role in result["roles"].items())
    rest = {name: value for name, value in result.items() if name not in LISTED}
    lines = [facts(params, rest), f"- roles: {', '.join(roles)}"]
    lines += [
        f"- odd: {inline(note['path'])}: {inline(note['why'], 300)}" for note in result["warnings"]
    ]
    if "comparison" in result:
        comparison = result["comparison"]
        lines.append(f"\n## Against version {comparison['against']}")
        lines += broken(comparison)
        if comparison["concerns"]:
            lines.append(f"It burdens {listed_names(comparison['concerns'])}.")
    return "\n".join(lines)


LISTED = ("roles", "warnings", "comparison")
"""What is shown in lines of its own."""


BREAKS_SHOWN = 20


def broken(comparison: Json) -> Iterator[str]:
    """Whom the changes of a content break, and by which of them."""
    yield (
        f"\nConsumers as built today meet a provider at the newer content: "
        f"{comparison['consumer']}. A provider as built today meets consumers at it: "
        f"{comparison['provider']}."
    )
    serious = [
        change
        for change in comparison["changes"]
        if change["consumer"] != "compatible" or change["provider"] != "compatible"
    ]
    for change in serious[:BREAKS_SHOWN]:
        whom = f"breaks {change['breaks']}" if "breaks" in change else "unknown"
        yield (
            f"- {whom}: {inline(change['path'])} {change['rule'].replace('_', ' ')}. "
            f"{inline(change['why'], 300)}"
        )
    more = len(serious) - BREAKS_SHOWN + comparison["moreChanges"]
    if more > 0:
        yield f"- and {more} more: `cacp_contract_get` with view compare lists them"


def projects(params: Json, result: Json) -> str:
    """cacp/project/list, in summary."""
    if not result["projects"]:
        return (
            "There are no active projects; archived ones are not listed. cacp_project_create makes "
            "one."
        )
    lines = [
        f"- {inline(item['name'])}: projectId `{item['projectId']}`, {item['status']}, "
        f"{item['repoCount']} repos, {item['contractCount']} contracts"
        for item in result["projects"]
    ]
    if result.get("nextCursor"):
        lines.append(f"More: cursor {inline(result['nextCursor'])}")
    return "\n".join(lines)


def project(params: Json, result: Json) -> str:
    """cacp/project/get, in summary."""
    return "\n".join(_project(result))


def _project(result: Json) -> Iterator[str]:
    yield f"# Project {inline(result['name'])}\n"
    yield f"- projectId: `{result['projectId']}`"
    yield f"- status: {result['status']}"
    yield f"- agreement: {result['agreementPolicy']} other party"
    yield f"- verified by: {VERIFIED_BY[result['verificationPolicy']]}\n"
    yield block(result["objective"], Author("the project's creator", trust=MEMBER))
    yield "\n## Repositories\n"
    for repo in result["repos"]:
        holder = f"held by {inline(repo['agent_id'])}" if repo.get("agent_id") else "free to join"
        role = f"{inline(repo['role'])}, {inline(repo['language'])}"
        yield f"- {inline(repo['name'])} ({role}): {holder}"
    yield "\n## Contracts\n"
    for item in result["contracts"]:
        proposer = inline(item.get("proposedByName", item["proposedBy"]))
        yield (
            f"- {inline(item['name'])}: contractId `{item['contractId']}`, {item['type']}, "
            f"version {item['version']}, {item['status']}, by {proposer}"
        )
    if result.get("nextCursor"):
        count = result["contractCount"]
        yield f"More of {count} contracts: cursor {inline(result['nextCursor'])}"
    elif not result["contractCount"]:
        yield "None yet. cacp_contract_propose makes one."
    if result["contextCount"]:
        yield f"\n{result['contextCount']} packets of shared context: cacp_context_list shows them."


def packets(params: Json, result: Json) -> str:
    """cacp/context/list."""
    if not result["packets"]:
        return (
            "There is no older context." if "before" in params else "There is no such context yet."
        )
    parts = [WARNING, *map(_packet, result["packets"])]
    if len(result["packets"]) >= params.get("limit", PACKETS):
        before = {"before": result["packets"][0]["packet_id"]}
        parts.append(f"Older ones: {next_call('cacp_context_list', params | before)}")
    return "\n\n".join(parts)


def agents(params: Json, result: Json) -> str:
    """cacp/agent/list."""
    lines = [f"You are {inline(result['ownId'])}. The others:", ""]
    lines += map(_agent, result["agents"])
    if not result["agents"]:
        lines.append("There are no others yet. `cacp keys create` makes a key for one.")
    if result.get("nextCursor"):
        lines.append(f"More: cursor {inline(result['nextCursor'])}")
    return "\n".join(lines)


def _agent(agent: Json) -> str:
    if agent.get("node"):
        seen = f"lives at node {inline(agent['node'])}"
    elif agent.get("lastSeen"):
        seen = f"{'awake' if agent['isAwake'] else 'asleep'}, last seen {agent['lastSeen']}"
    else:
        seen = "asleep, not seen since this node started"
    mail = "" if agent["hasMail"] else "; no mail reaches it: share context instead"
    held = [
        f"{inline(repo['repo'])} of {inline(repo['project'])} (`{repo['projectId']}`)"
        for repo in agent["repos"]
    ]
    held += [f"{agent['moreRepos']} more repos"] if agent["moreRepos"] else []
    repos = f"; holds {', '.join(held)}" if held else ""
    return f"- {inline(agent['agentId'])}: {seen}{repos}{mail}"


def _packet(packet: Json) -> str:
    head = [
        f"## {packet['type']}\n",
        f"- packetId: `{packet['packet_id']}`",
        f"- shared: {packet['timestamp']}",
    ]
    if packet.get("reply_to"):
        head.append(f"- reply to: {inline(packet['reply_to'])}")
    if packet["related_contracts"]:
        head.append(f"- contracts: {listed_names(packet['related_contracts'])}")
    author = Author(packet["from_agent"], packet["from_repo"], MEMBER)
    return "\n".join([*head, "", block_of_json(packet["content"], author)])


def _value(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list):
        return listed_names(value)
    return inline(value)


def listed_names(values: Iterable[Any]) -> str:
    """Names from outside in a line."""
    return ", ".join(inline(value) for value in values)
