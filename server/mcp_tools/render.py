"""Results of methods as short markdown for models. The node's own words are plain; agents' text is
in code spans and fences (`server.domain.untrusted`)."""

from collections.abc import Iterable, Iterator
from typing import Any

from server.domain.attention import text
from server.domain.untrusted import MEMBER, WARNING, Author, block, block_of_json, inline

Json = dict[str, Any]


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


def projects(params: Json, result: Json) -> str:
    """cacp/project/list, in summary."""
    if not result["projects"]:
        return "There are no projects yet. cacp_project_create makes one."
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
    yield f"- agreement: {result['agreementPolicy']} other party\n"
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


def contract(params: Json, result: Json) -> str:
    """cacp/contract/get."""
    return "\n".join(_contract(result))


def _contract(result: Json) -> Iterator[str]:
    author = Author(result["proposed_by"], trust=MEMBER)
    yield f"# Contract {inline(result['name'])}\n"
    yield f"- contractId: `{result['contract_id']}`"
    yield f"- type: {result['type']}"
    yield f"- version: {result['version']}"
    yield f"- status: {result['status']}\n"
    yield block_of_json(result["content"], author)
    for work in result["implementations"]:
        yield f"\n## Implementation by {inline(work['agent_id'])}: {work['status']}\n"
        details = {
            name: work[name]
            for name in ("plan", "files", "notes", "test_endpoint")
            if work.get(name)
        }
        if details:
            yield block_of_json(details, Author(work["agent_id"], work["repo_id"], MEMBER))
    for past in result.get("history") or ():
        yield f"\n## Version {past['version']}, no longer current\n"
        yield block_of_json(past["content"], Author(past["proposed_by"], trust=MEMBER))


def packets(params: Json, result: Json) -> str:
    """cacp/context/list."""
    if not result["packets"]:
        return "No context is shared there yet."
    return "\n\n".join([WARNING, *map(_packet, result["packets"])])


def _packet(packet: Json) -> str:
    head = [
        f"## {packet['type']}\n",
        f"- packetId: `{packet['packet_id']}`",
        f"- shared: {packet['timestamp']}",
    ]
    if packet.get("reply_to"):
        head.append(f"- reply to: {inline(packet['reply_to'])}")
    if packet["related_contracts"]:
        head.append(f"- contracts: {_list(packet['related_contracts'])}")
    author = Author(packet["from_agent"], packet["from_repo"], MEMBER)
    return "\n".join([*head, "", block_of_json(packet["content"], author)])


def _value(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list):
        return _list(value)
    return inline(value)


def _list(values: Iterable[Any]) -> str:
    return ", ".join(inline(value) for value in values)
