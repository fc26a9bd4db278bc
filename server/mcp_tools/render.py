"""Results of methods as short markdown for models: what the node says stands at the margin, what
agents wrote stands in spans and fences (`server.domain.untrusted`)."""

from collections.abc import Iterable, Iterator
from typing import Any

from server.domain.untrusted import WARNING, Author, block, block_of_json, inline

Json = dict[str, Any]

MEMBER = "member of the project"
"""The trust in who writes in a project: a node took it from the holder of one of its repos."""


def facts(params: Json, result: Any) -> str:
    """What a change came to: a line for each member that it has."""
    lines = [f"- {name}: {_value(value)}" for name, value in result.items() if value is not None]
    return "\n".join(lines)


def response(params: Json, result: Json) -> str:
    """cacp/contract/respond."""
    said = facts(params, result)
    if params["action"] == "agree" and result["status"] != "agreed":
        said += (
            "\n\nYour agreement is recorded, but the contract is not agreed: another party's "
            "request for a change or rejection stands, or other parties must agree too. Do not "
            "build on it yet; cacp_contract_get shows where it stands."
        )
    return said


def projects(params: Json, result: Json) -> str:
    """cacp/project/list, in summary."""
    if not result["projects"]:
        return "There are no projects yet. cacp_project_create makes one."
    lines = [
        f"- {inline(one['name'])}: projectId `{one['projectId']}`, {one['status']}, "
        f"{one['repoCount']} repos, {one['contractCount']} contracts"
        for one in result["projects"]
    ]
    if result.get("nextCursor"):
        lines.append(f"More: cursor {inline(result['nextCursor'])}")
    return "\n".join(lines)


def project(params: Json, found: Json) -> str:
    """cacp/project/get, in summary."""
    return "\n".join(_project(found))


def _project(found: Json) -> Iterator[str]:
    yield f"# Project {inline(found['name'])}\n"
    yield f"- projectId: `{found['projectId']}`"
    yield f"- status: {found['status']}"
    yield f"- agreement: {found['agreementPolicy']} other party\n"
    yield block(found["objective"], Author("the project's creator", trust=MEMBER))
    yield "\n## Repositories\n"
    for repo in found["repos"]:
        holder = f"held by {inline(repo['agent_id'])}" if repo.get("agent_id") else "free to join"
        role = f"{inline(repo['role'])}, {inline(repo['language'])}"
        yield f"- {inline(repo['name'])} ({role}): {holder}"
    yield "\n## Contracts\n"
    for one in found["contracts"]:
        proposer = inline(one.get("proposedByName", one["proposedBy"]))
        yield (
            f"- {inline(one['name'])}: contractId `{one['contractId']}`, {one['type']}, "
            f"version {one['version']}, {one['status']}, by {proposer}"
        )
    if found.get("nextCursor"):
        count = found["contractCount"]
        yield f"More of {count} contracts: cursor {inline(found['nextCursor'])}"
    elif not found["contractCount"]:
        yield "None yet. cacp_contract_propose makes one."
    if found["contextCount"]:
        yield f"\n{found['contextCount']} packets of shared context: cacp_context_list shows them."


def contract(params: Json, found: Json) -> str:
    """cacp/contract/get."""
    return "\n".join(_contract(found))


def _contract(found: Json) -> Iterator[str]:
    author = Author(found["proposed_by"], trust=MEMBER)
    yield f"# Contract {inline(found['name'])}\n"
    yield f"- contractId: `{found['contract_id']}`"
    yield f"- type: {found['type']}"
    yield f"- version: {found['version']}"
    yield f"- status: {found['status']}\n"
    yield block_of_json(found["content"], author)
    for work in found["implementations"]:
        yield f"\n## Implementation by {inline(work['agent_id'])}: {work['status']}\n"
        details = {
            name: work[name]
            for name in ("plan", "files", "notes", "test_endpoint")
            if work.get(name)
        }
        if details:
            yield block_of_json(details, Author(work["agent_id"], work["repo_id"], MEMBER))
    for past in found.get("history") or ():
        yield f"\n## Version {past['version']}, no longer current\n"
        yield block_of_json(past["content"], Author(past["proposed_by"], trust=MEMBER))


def packets(params: Json, result: Json) -> str:
    """cacp/context/list."""
    if not result["packets"]:
        return "Nothing is shared there yet."
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
