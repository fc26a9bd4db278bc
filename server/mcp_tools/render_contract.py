"""A contract, its timeline and its conflicts as short markdown for models. What decides the next
step comes before the content, which may be long."""

from collections.abc import Iterator

from schemas.receipt_calls import lack_of
from schemas.verification import VERIFIED_BY
from server.domain.attention import text
from server.domain.next_call import next_call
from server.domain.untrusted import MEMBER, Author, block, block_of_json, inline
from server.mcp_tools.render import Json, broken, listed_names


def contract(given: Json, result: Json) -> str:
    """cacp_contract_get, whatever its view."""
    if "timeline" in result:
        return "\n".join(_timeline(result))
    if "against" in result:
        return "\n".join(_compared(result))
    if "contract" not in result:
        return "\n".join(_conflicts(result))
    return "\n".join(_overview(given, result))


def _overview(given: Json, result: Json) -> Iterator[str]:
    shown = result["contract"]
    names = {party["repoId"]: party.get("name") for party in result["parties"]}
    proposer = names.get(shown["proposed_by"]) or shown["proposed_by"]
    yield f"# Contract {inline(shown['name'])}\n"
    yield f"- contractId: `{shown['contract_id']}`"
    yield f"- type: {shown['type']}"
    yield f"- version: {shown['version']}"
    yield f"- status: {shown['status']}"
    yield f"- written by: {inline(proposer)}"
    yield f"- parties: {listed_names(map(_party, result['parties']))}"
    yield f"- agreement: {result['agreementPolicy']} other party"
    yield f"- verified by: {VERIFIED_BY[result['verificationPolicy']]}"
    if result["round"] > 1:
        yield f"- round of implementation: {result['round']}"
    if result["conflicts"]:
        step = next_call("cacp_contract_get", _ids(given) | {"view": "conflicts"})
        yield f"- conflicts: {result['conflicts']} versions lost a race; see {step}"
    yield from _steps(result)
    if result.get("changeNote"):
        yield "\n## Why this version\n"
        yield block(result["changeNote"], Author(proposer, trust=MEMBER))
    yield from _responses(result)
    yield from _verifications(result)
    yield from _proof(result)
    yield from _changes(result, proposer)
    yield "\n## Content\n"
    yield block_of_json(shown["content"], Author(proposer, trust=MEMBER))
    yield from _work(result, names)
    for past in shown.get("history") or ():
        yield f"\n## Version {past['version']}, no longer current\n"
        author = names.get(past["proposed_by"]) or past["proposed_by"]
        yield block_of_json(past["content"], Author(author, trust=MEMBER))
    yield f"\nWho did what when: {next_call('cacp_contract_get', _ids(given) | TIMELINE)}"


TIMELINE = {"view": "timeline"}


def _steps(result: Json) -> Iterator[str]:
    yield "\n## Your next step\n"
    for item in result["ownSteps"]:
        yield f"{item['summary']}."
        yield from text.steps(item)
    if not result["ownSteps"]:
        waits: dict[str, list[str]] = {}
        for step in result["awaitedSteps"]:
            waits.setdefault(step["kind"], []).append(step.get("name") or step["repoId"])
        steps = "; ".join(f"{listed_names(names)} to {kind}" for kind, names in waits.items())
        yield f"None: the contract waits for {steps}." if steps else "None: nothing is open."


def _responses(result: Json) -> Iterator[str]:
    if result["responses"]:
        yield f"\n## Responses to version {result['contract']['version']}\n"
    for response in result["responses"]:
        author = _author(response)
        yield f"- {_repo(response)}: {response['action']} at {response['timestamp']}"
        if response.get("comment"):
            yield block(response["comment"], author)
        if response.get("suggestedChange") is not None:
            yield f"Suggested change. {block_of_json(response['suggestedChange'], author)}"


def _verifications(result: Json) -> Iterator[str]:
    if result["verifications"]:
        yield "\n## Verifications: what agents say\n"
    for check in result["verifications"]:
        yield f"- {_repo(check)}: {check['result']} in round {check['round']}, by word"
        if check.get("notes"):
            yield block(check["notes"], _author(check))
        if check.get("failureDetails"):
            yield block_of_json(check["failureDetails"], _author(check))


def _proof(result: Json) -> Iterator[str]:
    if result["receipts"] or result["unproven"]:
        yield "\n## Proof: what runners found\n"
    for side in result["unproven"]:
        what = f"{_repo(side)} as {side['side']}"
        lack = lack_of(side, lambda text: inline(text, 300))
        yield f"- {what}: not proven, {lack}; `cacp verify` or `cacp probe` makes a receipt"
    for listed in result["receipts"]:
        ran = listed["receipt"]
        name = inline(listed.get("name") or ran["repo"])
        what = inline(ran.get("command") or ran["tool"], 200)
        proves = "it proves that side" if listed["proves"] else "it proves nothing"
        why = f": {inline(listed['problem'], 300)}" if listed.get("problem") else ""
        yield (
            f"- {name} as {ran['side']}: {what} at commit {ran['commit'][:12]}, round "
            f"{ran['round']}, by runner {inline(ran['runner'])}: {ran['outcome']}; {proves}{why}"
        )


def _changes(result: Json, proposer: str) -> Iterator[str]:
    since = result.get("changesSince")
    if since is None:
        return
    agreed = ", to which you agreed" if since["basis"] == "agreed" else ""
    yield f"\n## Changes since version {since['version']}{agreed}\n"
    lines = [*since["lines"], *([f"… {since['more']} more lines"] if since["more"] else [])]
    text = "\n".join(lines) or "(the same content)"
    yield block(text, Author(proposer, trust=MEMBER))
    yield from broken(since)


def _compared(result: Json) -> Iterator[str]:
    newer = f"version {result['version']}" if "version" in result else "the given content"
    yield f"# Version {result['against']} and {newer}, as {result['dialect']}"
    yield from broken(result)
    if result["concerns"]:
        yield f"\nIt burdens {listed_names(result['concerns'])}."


def _work(result: Json, names: dict[str, str | None]) -> Iterator[str]:
    for work in result["contract"].get("implementations") or ():
        name = names.get(work["repo_id"]) or work["repo_id"]
        yield f"\n## Implementation by {inline(name)}: {work['status']}\n"
        details = {
            member: work[member]
            for member in ("plan", "files", "notes", "test_endpoint")
            if work.get(member)
        }
        if details:
            yield block_of_json(details, Author(work["agent_id"], name, MEMBER))


def _timeline(result: Json) -> Iterator[str]:
    yield "# Timeline, oldest first\n"
    for entry in result["timeline"]:
        round_ = f", round {entry['round']}" if "round" in entry else ""
        yield (
            f"- {entry['timestamp']} {entry['step']}: version {entry['version']}{round_}, "
            f"by {inline(entry['agentId'])}"
        )
        author = Author(entry["agentId"], trust=MEMBER)
        if entry.get("note"):
            yield block(entry["note"], author)
        if entry.get("details"):
            yield block_of_json(entry["details"], author)


def _conflicts(result: Json) -> Iterator[str]:
    if not result["conflicts"]:
        yield "There are no conflicts: no version has lost a race."
        return
    yield (
        "# Versions that lost a race\n\nEach was written at the same time as another one, which "
        "became the current version. What the current one lacks belongs into an update."
    )
    for lost in result["conflicts"]:
        yield (
            f"\n## Version {lost['version']} of {inline(lost['contractId'])} by "
            f"{inline(lost['proposedBy'])}; the current version is {lost['currentVersion']}\n"
        )
        author = Author(lost["proposedBy"], trust=MEMBER)
        if lost.get("changeNotes"):
            yield block(lost["changeNotes"], author)
        yield block_of_json(lost["content"], author)


def _ids(given: Json) -> Json:
    return {name: given[name] for name in ("projectId", "contractId") if name in given}


def _party(party: Json) -> str:
    name = party.get("name") or party["repoId"]
    return f"{name} ({party['agentId']})" if "agentId" in party else f"{name} (held by nobody)"


def _repo(statement: Json) -> str:
    return inline(statement.get("name") or statement["repoId"])


def _author(statement: Json) -> Author:
    return Author(statement["agentId"], statement.get("name") or statement["repoId"], MEMBER)
