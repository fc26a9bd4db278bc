"""One message for each method that members of a mesh call: what mutations begin from.

Signatures stand as `SIGN` and are filled in by `sealed`, after what they cover was changed: so a
member's mutations are its own word, and not only messages that were damaged on the way.
"""

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from uuid_utils import uuid7

from peers.receipts import signed
from peers.signing import SigningKey
from schemas.acp_mesh import Directory
from schemas.facts import Fact, members_of
from schemas.file import FileFact, FileRequestFact
from schemas.receipt import ProofRun
from server.domain.agents import identity
from server.domain.authorship import statement
from server.domain.canonical import digest
from server.domain.identifiers import repo_id_for
from server.methods import METHODS
from tests.acceptance.shapes import encode

SIGN = "$sign"
"""Stands for a member's signature over what is beside it."""
CONTENT: dict[str, Any] = {"path": "/member", "method": "GET"}
FILE = b"logo"
FACT: TypeAdapter[Any] = TypeAdapter(Fact)
MODELS: dict[str, type[BaseModel]] = {
    "file": FileFact,
    "file_request": FileRequestFact,
    "directory": Directory,
}
RUNNER = SigningKey(bytes(32))
PACKET: dict[str, Any] = {"related_contracts": [], "reply_to": None}

Json = dict[str, Any]


@dataclass(frozen=True)
class Ground:
    """What a member's messages are about. Times are stamps."""

    now: int
    node: str
    """The agent id of the node that is attacked."""
    member: str
    name: str
    """The repo of the member."""
    key: SigningKey
    project: str
    """One that honest nodes work on, and in which the member has claimed its repo."""
    contract: str
    """One of an honest node in it, at its first version, with the content CONTENT."""
    file: str
    """One that was shared at the attacked node, whose content is FILE."""
    handoff: str
    reader: str
    """An agent at the attacked node."""
    writer: str
    """An agent at the member."""
    id: Callable[[], str] = lambda: str(uuid7())
    """A fresh id for what the member makes."""

    @property
    def repo(self) -> str:
        return repo_id_for(self.project, self.name)


def peer_methods() -> list[str]:
    """The methods between nodes: each that says who the node is that calls."""
    return [
        name
        for name, method in METHODS.items()
        if method.access == "sync" or "source_agent" in method.params.model_fields
    ]


def version(at: Ground, **more: Any) -> Json:
    content = more.get("content", CONTENT)
    return {
        "kind": "version",
        "version": 1,
        "digest": digest(content),
        "stamp": at.now,
        "content": content,
        "repo_id": at.repo,
        "agent_id": at.member,
        "parties": [at.repo, repo_id_for(at.project, "alpha")],
        "policy": "any",
        "parent": None,
        "note": None,
    } | more


def facts(at: Ground) -> list[Json]:
    """One of each kind, of one contract."""
    of_it = {"version": 1, "digest": digest(CONTENT), "stamp": at.now + 1}
    said = of_it | {"repo_id": at.repo, "agent_id": at.member}
    return [
        version(at),
        said | {"kind": "response", "action": "agree", "comment": "c", "suggested_change": None},
        of_it | {"kind": "round", "number": 2},
        said
        | {
            "kind": "implementation",
            "round": 1,
            "status": "complete",
            "plan": "p",
            "files": ["a.py"],
            "notes": None,
            "test_endpoint": None,
            "started_at": at.now,
            "completed_at": at.now + 1,
        },
        said
        | {
            "kind": "verification",
            "round": 1,
            "result": "failure",
            "notes": None,
            "details": {"failed": 3},
        },
    ]


def project_state(at: Ground) -> Json:
    """That a project is active, and that the sender has released its own repo."""
    register = {
        "state": "active",
        "name": "Profiles",
        "by": at.member,
        "stamp": at.now,
        "signature": SIGN,
    }
    released = {
        "repo_id": at.repo,
        "agent_id": identity(at.member),
        "by": at.member,
        "released_at": at.now,
        "signature": SIGN,
    }
    state = {"project_id": at.project, "lifecycle": register, "releases": [released]}
    return {"state": state, "keys": {at.member: at.key.public}}


def project_sync(at: Ground) -> Json:
    claim = {
        "agent_id": at.member,
        "agent_endpoint": None,
        "claimed_at": at.now,
        "renewed_at": at.now,
        "signature": SIGN,
    }
    repo = {
        "repo_id": at.repo,
        "name": at.name,
        "role": "service",
        "language": "go",
        "relevant_paths": ["src/"],
        "url": None,
        "stamp": at.now,
        "signature": SIGN,
        "claims": [claim],
    }
    registers = {
        "name": "Profiles",
        "objective": "o",
        "status": "planning",
        "agreement_policy": "any",
        "created_at": at.now,
        "stamp": at.now,
        "signature": SIGN,
        "repos": [repo],
    }
    whole = {"project_id": at.project, "name": "Profiles", "contracts": [], "context_history": []}
    return {"project": whole, "registers": registers, "keys": {at.member: at.key.public}}


def contract_sync(at: Ground) -> Json:
    return contract_of(at, at.id(), facts(at))


def contract_of(at: Ground, contract_id: str, said: list[Json]) -> Json:
    whole = {
        "contract_id": contract_id,
        "type": "api_endpoint",
        "name": "Theirs",
        "version": 1,
        "status": "proposed",
        "content": CONTENT,
    }
    signed = [{"fact": one, "signature": SIGN} for one in said]
    more = {"createdAt": at.now, "headerSignature": SIGN}
    return {"projectId": at.project, "contract": whole, "facts": signed} | more


def receipt_sync(at: Ground) -> Json:
    """What a runner of the member found of the honest contract's provider."""
    repo, runner = repo_id_for(at.project, "alpha"), "aid://example.com/ci@1.0.0"
    of_it = {"version": 1, "digest": digest(CONTENT), "round": 1}
    run = of_it | {
        "contractId": at.contract,
        "repo": repo,
        "side": "provider",
        "commit": "a" * 40,
        "tree": "b" * 40,
        "dirty": False,
        "tool": "verify",
        "command": f"test {at.id()}",
        "exitCode": 0,
        "outcome": "passed",
        "outputDigest": "c" * 64,
        "startedAt": iso(at.now),
        "duration": 0,
        "runner": runner,
    }
    fact = of_it | {
        "kind": "receipt",
        "stamp": at.now + 1,
        "repo_id": repo,
        "agent_id": runner,
        "receipt": run,
    }
    receipts = {"contract_id": at.contract, "facts": [{"fact": fact, "signature": SIGN}]}
    return {"projectId": at.project, "receipts": receipts}


def context_sync(at: Ground) -> Json:
    packet = {
        "packet_id": at.id(),
        "from_repo": at.repo,
        "from_agent": at.member,
        "timestamp": iso(at.now),
        "type": "question",
        "content": {"question": "Which pagination?"},
        "related_contracts": [at.contract],
        "reply_to": None,
    }
    return {"projectId": at.project, "packet": packet, "signature": SIGN}


def repo_sync(at: Ground) -> Json:
    repo = {"repo_id": at.repo, "name": at.name, "agent_id": at.member, "role": "service"}
    return {"projectId": at.project, "repo": repo}


def file_sync(at: Ground) -> Json:
    file = {
        "file_id": at.id(),
        "name": "logo.png",
        "content_type": "image/png",
        "size": 4,
        "sha256": "ab" * 32,
        "purpose": None,
        "related_contracts": [],
        "from_repo": at.repo,
        "from_agent": at.member,
        "fulfils": None,
        "stamp": at.now,
    }
    return {"projectId": at.project, "file": file, "signature": SIGN}


def file_request(at: Ground) -> Json:
    request = {
        "request_id": at.id(),
        "requested_by": at.repo,
        "from_agent": at.member,
        "description": "The logo",
        "suggested_format": None,
        "stamp": at.now,
    }
    return {"projectId": at.project, "request": request, "signature": SIGN}


def file_content(at: Ground) -> Json:
    sha256 = hashlib.sha256(FILE).hexdigest()
    return {"projectId": at.project, "fileId": at.file, "sha256": sha256, "relay": True}


def compare(at: Ground) -> Json:
    kinds = ["project", "contract", "context", "file", "file_request"]
    return {"prefixes": ["", "a", "ab", "abc"], "kinds": kinds}


def pull(at: Ground) -> Json:
    named = [("project", at.project), ("contract", at.contract), ("context", at.id())]
    wanted = [{"entity": kind, "project_id": at.project, "entity_id": id} for kind, id in named]
    return {"entities": wanted}


def bans(at: Ground) -> Json:
    return {"known": hashlib.sha256(at.member.encode()).hexdigest()}


def evidence(at: Ground) -> Json:
    return {"after": 0}


def announce(at: Ground) -> Json:
    return {"agentId": at.member, "endpoint": "http://127.0.0.1:1", "repoName": at.name}


def handoff(at: Ground) -> Json:
    call = {"action": "accept", "handoff_id": at.handoff}
    return {"agent": at.writer, "call": call, "human": True}


def agents(at: Ground) -> Json:
    listed = {"agents": [at.member, at.writer], "stamp": at.now, "epoch": "e"}
    return {"listed": {"directory": listed, "signature": SIGN}}


def mail(at: Ground) -> Json:
    message_id = at.id()
    message = {
        "id": message_id,
        "protocol": "acp",
        "version": "1.0.0",
        "from": at.writer,
        "to": [at.reader],
        "thread_id": message_id,
        "type": "knowledge.push",
        "priority": "normal",
        "status": "pending",
        "payload": {"summary": "hello"},
        "policy": {"visibility": "private", "sensitivity": "low", "human_gate": "none"},
        "created_at": iso(at.now),
    }
    letter = {"message": message, "hop": 0, "recipients": [identity(at.reader)]}
    read = {"recipient": identity(at.writer), "status": "read", "read_at": iso(at.now)}
    receipts = [{"message_id": message_id, "reached": [read]}]
    return {"messages": [{"letter": letter, "signature": SIGN}], "receipts": receipts}


LIFECYCLE = frozenset({"state", "name", "by", "stamp"})
RELEASE = frozenset({"agent_id", "by", "released_at"})
"""What is signed of a project's lifecycle, and of a release."""
SEEDS: dict[str, Callable[[Ground], Json]] = {
    "cacp/project/sync": project_sync,
    "cacp/project/syncState": project_state,
    "cacp/contract/sync": contract_sync,
    "cacp/receipt/sync": receipt_sync,
    "cacp/context/sync": context_sync,
    "cacp/repo/sync": repo_sync,
    "cacp/file/sync": file_sync,
    "cacp/file/syncRequest": file_request,
    "cacp/sync/file": file_content,
    "cacp/sync/digest": compare,
    "cacp/sync/pull": pull,
    "cacp/sync/bans": bans,
    "cacp/sync/evidence": evidence,
    "cacp/peer/announce": announce,
    "acp/sync/handoff": handoff,
    "acp/sync/agents": agents,
    "acp/sync/mail": mail,
}
"""By method, without `source_agent`."""


HEADER = frozenset({"name", "objective", "status", "agreement_policy", "created_at", "stamp"})
"""Of a project's registers, what is signed as one."""
REPO = frozenset({"name", "role", "language", "relevant_paths", "url", "stamp"})
"""Of a repo in them, too."""


# --- signatures ---------------------------------------------------------------------------------


def sealed(at: Ground, params: Any) -> Any:
    """A message with its signatures, each over what stands beside it, whatever that is by now."""
    if not isinstance(params, dict):
        return params
    whole = deepcopy(params)
    project = whole.get("projectId")
    _seal_repos(at, whole)
    _seal_state(at, whole)
    registers = whole.get("registers")
    if isinstance(registers, dict):
        header = {name: one for name, one in registers.items() if name in HEADER}
        _seal(at, registers, "header", _member(whole, "project", "project_id"), header)
    contract = _member(whole, "contract", "contract_id")
    called = {
        "type": _member(whole, "contract", "type"),
        "name": _member(whole, "contract", "name"),
    }
    called["stamp"] = whole.get("createdAt")
    _seal(at, whole, "contract", contract, called, "headerSignature")
    for one in _objects(whole.get("facts")):
        _seal(at, one, "fact", contract, one.get("fact"))
    for one in _objects(_member(whole, "receipts", "facts")):
        if isinstance(one.get("fact"), dict):
            one["fact"]["receipt"] = _run_by_its_runner(one["fact"].get("receipt"))
        of_them = _member(whole, "receipts", "contract_id")
        _seal(at, one, "fact", of_them, one.get("fact"))
    packet = whole.get("packet")
    if isinstance(packet, dict):
        packet = PACKET | packet
    for kind, body in (
        ("packet", packet),
        ("file", whole.get("file")),
        ("file_request", whole.get("request")),
    ):
        if body is not None:
            _seal(at, whole, kind, project, body)
    listed = whole.get("listed")
    if isinstance(listed, dict):
        _seal(at, listed, "directory", identity(at.member), listed.get("directory"))
    for one in _objects(whole.get("messages")):
        if "letter" in one:
            text = encode(one.pop("letter")).decode("utf-8", "replace")
            one["text"] = text
            _seal(at, one, "mail", identity(at.node), {"text": text})
    return whole


def _run_by_its_runner(run: Any) -> Any:
    """The receipt of a run, signed, if it is one."""
    try:
        return signed(ProofRun.model_validate(run), RUNNER).wire()
    except ValidationError:
        return run


def _seal_state(at: Ground, whole: Json) -> None:
    project = _member(whole, "state", "project_id")
    for one in _objects([_member(whole, "state", "lifecycle")]):
        said = {name: value for name, value in one.items() if name in LIFECYCLE}
        _seal(at, one, "lifecycle", project, said)
    for one in _objects(_member(whole, "state", "releases")):
        said = {name: value for name, value in one.items() if name in RELEASE}
        _seal(at, one, "release", one.get("repo_id"), said)


def _seal_repos(at: Ground, whole: Json) -> None:
    project = _member(whole, "project", "project_id")
    for repo in _objects(_member(whole, "registers", "repos")):
        said = {name: one for name, one in repo.items() if name in REPO}
        _seal(at, repo, "repo", project, said)
        for claim in _objects(repo.get("claims")):
            body = {name: value for name, value in claim.items() if name != "signature"}
            _seal(at, claim, "claim", repo.get("repo_id"), body)


def _seal(
    at: Ground, holder: Json, kind: str, place: Any, body: Any, member: str = "signature"
) -> None:
    if holder.get(member) == SIGN:
        holder[member] = {"node": at.member, "value": at.key.sign(_said(kind, place, body))}


def _said(kind: str, place: Any, body: Any) -> bytes:
    """What a node checks the signature of: the body as its models read it, where they can."""
    try:
        if kind == "fact":
            body = members_of(FACT.validate_python(body))
        elif kind in MODELS:
            body = MODELS[kind].model_validate(body).model_dump()
        return statement(kind, place, body)
    except Exception:
        # What has no canonical form can't be signed: any bytes are as good.
        return encode([kind, place, body])


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def iso(stamp: int) -> str:
    moment = datetime.fromtimestamp(stamp // 1_000_000, UTC).replace(microsecond=stamp % 1_000_000)
    return moment.isoformat(timespec="microseconds")
