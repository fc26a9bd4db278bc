"""How a node can break one rule: for each shipped HTTP test, the mutants that it must find.

A mutation changes one thing in what a right node answers; `tests.comply.mutant` serves them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from comply.files import SUITES
from comply.source import SUFFIX, id_of


@dataclass
class Exchange:
    """A request, and the right node's answer to it: its JSON, or None where it has no body."""

    path: str
    call: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    forward: bool = True

    def is_call(self, method: str) -> bool:
        """Whether it calls `method`, or `cacp/METHOD`."""
        called = self.call.get("method") if isinstance(self.call, dict) else None
        return called in (method, f"cacp/{method}")


@dataclass(frozen=True)
class Mutation:
    """`before` may take the request from the node; `after` changes what the node answered."""

    before: Callable[[Exchange], None] = lambda exchange: None
    after: Callable[[Exchange], None] = lambda exchange: None


def put(value: Any, path: str, new: Any) -> None:
    """Put `new` at a dotted path, `*` for every element; what is not there stays away."""
    first, _, rest = path.partition(".")
    if isinstance(value, list) and first == "*":
        for item in value:
            put(item, rest, new)
    elif isinstance(value, dict):
        if rest:
            put(value.get(first), rest, new)
        else:
            value[first] = new(value.get(first)) if callable(new) else new


def result(method: str, path: str, new: Any) -> Mutation:
    """Something else at a place of a method's result."""

    def after(exchange: Exchange) -> None:
        if exchange.is_call(method) and isinstance(exchange.body, dict):
            put(exchange.body.get("result"), path, new)

    return Mutation(after=after)


def see(path: str, new: Any) -> Mutation:
    """Something else at a place of the project, as `cacp/project/get` shows it."""
    return result("project/get", path, new)


def page(path: str, place: str, new: Any) -> Mutation:
    """Something else on a page of discovery."""

    def after(exchange: Exchange) -> None:
        if exchange.path == path:
            put(exchange.body, place, new)

    return Mutation(after=after)


def accepts(method: str) -> Mutation:
    """Refuses nothing."""

    def after(exchange: Exchange) -> None:
        if exchange.is_call(method) and "error" in exchange.body:
            exchange.status = 200
            exchange.body = {"jsonrpc": "2.0", "id": exchange.call["id"], "result": {}}

    return Mutation(after=after)


def refuses(method: str, **params: Any) -> Mutation:
    """Refuses what is right."""

    def after(exchange: Exchange) -> None:
        if exchange.is_call(method) and params.items() <= exchange.call["params"].items():
            error = {"code": -32602, "message": "Invalid params"}
            exchange.body = {"jsonrpc": "2.0", "id": exchange.call["id"], "error": error}

    return Mutation(after=after)


def swallows(
    method: str, wanted: Callable[[Any], bool] = lambda params: True, said: Any = None
) -> Mutation:
    """Says that it is done, and does nothing."""

    def before(exchange: Exchange) -> None:
        if exchange.is_call(method) and wanted(exchange.call["params"]):
            exchange.forward = False
            answer = said or {"status": "updated"}
            exchange.body = {"jsonrpc": "2.0", "id": exchange.call["id"], "result": answer}

    return Mutation(before=before)


def answers(change: Callable[[Any], Any]) -> Mutation:
    """Another body to every `POST /`."""

    def after(exchange: Exchange) -> None:
        if exchange.path == "/":
            exchange.body = change(exchange.body)

    return Mutation(after=after)


def error(field: str, new: Any) -> Mutation:
    """Something else in every error."""

    def change(body: Any) -> Any:
        for one in body if isinstance(body, list) else [body]:
            put(one, f"error.{field}", new) if isinstance(one, dict) and "error" in one else None
        return body

    return answers(change)


def identity(new: Any) -> Mutation:
    """Another id in every answer."""

    def change(body: Any) -> Any:
        put(body, "id", new)
        return body

    return answers(change)


def header(name: str, value: str) -> Mutation:
    return Mutation(after=lambda exchange: exchange.headers.update({name: value}))


def status(path: str, code: int) -> Mutation:
    def after(exchange: Exchange) -> None:
        if exchange.path == path:
            exchange.status = code

    return Mutation(after=after)


def twice(value: Any) -> Any:
    return [*value, *value]


def leaks(
    method: str = "acp/inbox",
    path: str = "messages",
    shown: Callable[[Any], Any] = lambda message: message,
    wanted: Callable[[Any], bool] = lambda message: True,
) -> Mutation:
    """Shows everyone the message that was sent last, of those that are wanted."""
    sent: list[Any] = [None]

    def after(exchange: Exchange) -> None:
        if exchange.is_call("acp/send") and "result" in exchange.body:
            message = exchange.body["result"]["message"]
            sent[0] = message if wanted(message) else sent[0]
        if exchange.is_call(method):
            put(exchange.body, f"result.{path}", lambda found: [*found, shown(sent[0])])

    return Mutation(after=after)


def buries() -> Mutation:
    """Lists the message that was sent last as a dead letter of everyone's."""
    return leaks("acp/deadLetters", "letters", lambda message: {"message": message})


def hears(method: str, path: str, new: Any) -> Mutation:
    """Takes a call for another one."""

    def before(exchange: Exchange) -> None:
        if exchange.is_call(method):
            put(exchange.call["params"], path, new)

    return Mutation(before=before)


def acting(action: str) -> Callable[[Any], bool]:
    return lambda params: bool(params["action"] == action)


def mail(path: str, new: Any) -> Mutation:
    """Something else at a place of each message in an inbox."""
    return result("acp/inbox", f"messages.*.{path}", new)


WRONG = error("code", -32099)
FORGED = [{"from": "aid://example.com/comply-forged@1.0.0"}]
ANSWERED = {"jsonrpc": "2.0", "id": None, "result": 1}

CACP: dict[str, list[Mutation]] = {
    "context.get-thread": [result("context/getThread", "thread", lambda thread: thread[1:])],
    "context.list": [result("context/list", "packets", twice)],
    "context.ask-question": [see("context_history.*.type", "env_config")],
    "context.record-decision": [see("context_history.*.type", "env_config")],
    "context.share": [
        see("context_history.*.related_contracts", []),
        see("context_history.*.from_repo", "nobody"),
        see("context_history.*.timestamp", "yesterday"),
    ],
    "context.share-invalid": [accepts("context/share")],
    "contract.agree": [
        see("contracts.*.status", "proposed"),
        result("contract/respond", "version", 7),
    ],
    "contract.agree-negotiating": [see("contracts.*.status", "negotiating")],
    "contract.agree-own": [accepts("contract/respond")],
    "contract.agree-updated": [see("contracts.*.version", 1)],
    "contract.get": [result("contract/get", "history", []), result("contract/get", "status", "x")],
    "contract.history": [see("contracts.*.history", [])],
    "contract.list": [result("contract/list", "contracts", []), refuses("contract/list")],
    "contract.object": [
        see("contracts.*.proposed_by", "nobody"),
        see("contracts.*.content", {}),
        see("contracts.*.created_at", 0),
    ],
    "contract.propose": [result("contract/propose", "version", 0)],
    "contract.propose-invalid": [accepts("contract/propose")],
    "contract.propose-unknown-project": [accepts("contract/propose")],
    "contract.reject": [see("contracts.*.status", "agreed")],
    "contract.reject-agreed": [accepts("contract/respond")],
    "contract.reopen": [see("contracts.*.status", "agreed")],
    "contract.reopen-verified": [see("contracts.*.status", "verified")],
    "contract.request-change": [see("contracts.*.status", "proposed")],
    "contract.respond-invalid": [accepts("contract/respond")],
    "contract.respond-unknown": [accepts("contract/respond")],
    "contract.update": [
        result("contract/update", "version", 1),
        see("contracts.*.content", {"path": "/api/v1/users/profile"}),
    ],
    "contract.update-agreed": [accepts("contract/update")],
    "contract.update-unknown": [accepts("contract/update")],
    "contract.update-voids": [see("contracts.*.status", "agreed")],
    "discovery.card": [page("/.well-known/agent.json", "protocols.cacp", "1.0")],
    "discovery.health": [page("/health", "agentId", None), page("/health", "status", "degraded")],
    "discovery.methods": [page("/methods", "methods", lambda names: names[len(names) // 2 :])],
    "discovery.register": [status("/peers/register", 404)],
    "errors.batch": [answers(lambda body: body[:1] if isinstance(body, list) else body)],
    "errors.conflict": [accepts("project/create")],
    "errors.forbidden": [accepts("project/join")],
    "errors.invalid-params": [WRONG, error("message", "Invalid params")],
    "errors.invalid-request": [WRONG],
    "errors.method-not-found": [WRONG],
    "errors.parse": [WRONG],
    "errors.taken-repo": [accepts("project/join")],
    "errors.too-large": [WRONG],
    "errors.unauthenticated": [WRONG],
    "file.request": [result("file/listRequests", "requests", [])],
    "file.share": [
        result("file/get", "content", ""),
        result("file/share", "sha256", "0"),
    ],
    "file.share-invalid": [accepts("file/share")],
    "implementation.again": [see("contracts.*.status", "agreed")],
    "implementation.complete": [see("contracts.*.status", "agreed")],
    "implementation.complete-one": [
        see("contracts.*.status", "implemented"),
        see("contracts.*.implementations.*.files", []),
    ],
    "implementation.complete-early": [accepts("implementation/complete")],
    "implementation.get-status": [result("implementation/getStatus", "implementations", [])],
    "implementation.start": [see("contracts.*.implementations", [])],
    "implementation.start-early": [accepts("implementation/start")],
    "implementation.start-unknown": [accepts("implementation/start")],
    "implementation.verify-early": [accepts("implementation/verify")],
    "implementation.verify-failure": [see("contracts.*.status", "verified")],
    "implementation.verify-invalid": [accepts("implementation/verify")],
    "implementation.verify-partial": [see("contracts.*.status", "verified")],
    "implementation.verify-success": [see("contracts.*.status", "implemented")],
    "mesh.agree": [see("contracts.*.status", "proposed")],
    "mesh.conflict": [see("contracts.*.content.path", "/one")],
    "mesh.context": [see("context_history", []), see("context_history", twice)],
    "mesh.implementation": [see("contracts.*.status", "agreed")],
    "mesh.join": [see("repos.*.agent_id", None)],
    "mesh.peers": [page("/health", "peerCount", 0)],
    "mesh.project": [see("objective", ""), see("repos", lambda repos: repos[:1])],
    "mesh.propose": [see("contracts", [])],
    "mesh.question": [see("context_history", lambda packets: packets[:1])],
    "mesh.reject": [see("contracts.*.status", "negotiating")],
    "mesh.request-change": [see("contracts.*.status", "proposed")],
    "mesh.update": [see("contracts.*.version", 1)],
    "peer.announce": [result("peer/announce", "myRepoName", "another")],
    "project.add-repo": [see("repos", lambda repos: repos[:2])],
    "project.create": [
        result("project/create", "repoCount", 1),
        result("project/create", "projectId", "p1"),
    ],
    "project.create-invalid": [accepts("project/create")],
    "project.get": [see("objective", ""), see("updated_at", None), see("repos", [])],
    "project.get-unknown": [accepts("project/get")],
    "project.join": [
        see("repos.*.agent_endpoint", None),
        result("project/join", "status", "ok"),
    ],
    "project.join-unknown": [accepts("project/join")],
    "project.join-unknown-repo": [accepts("project/join")],
    "project.list": [result("project/list", "projects", [])],
    "project.update-status": [swallows("project/updateStatus")],
    "project.update-status-invalid": [accepts("project/updateStatus")],
    "security.not-ones-repo": [accepts("project/join")],
    "security.unknown-key": [accepts("project/list")],
    "sync.context": [swallows("context/sync"), see("context_history", twice)],
    "sync.contract": [swallows("contract/sync")],
    "sync.contract-newer": [
        swallows("contract/sync", lambda params: params["contract"]["version"] == 2)
    ],
    "sync.contract-older": [see("contracts.*.version", 1)],
    "sync.contract-twice": [see("contracts", twice)],
    "sync.forged-source": [accepts("context/sync")],
    "sync.project": [swallows("project/sync")],
    "sync.repo": [swallows("repo/sync")],
    "transport.content-type": [header("content-type", "text/plain")],
    "transport.id": [identity("other")],
}
JSON_RPC: dict[str, list[Mutation]] = {
    "batch.empty": [answers(lambda body: [body]), WRONG],
    "batch.invalid": [answers(lambda body: body[:1]), WRONG],
    "batch.mixed": [answers(lambda body: body[:1]), answers(lambda body: [*body, ANSWERED])],
    "batch.notifications": [answers(lambda body: [])],
    "id.null": [answers(lambda body: None)],
    "id.number": [identity("7")],
    "id.string": [identity(None)],
    "id.zero": [answers(lambda body: None)],
    "notification.silent": [answers(lambda body: ANSWERED)],
    "error.parse-batch": [answers(lambda body: [body])],
    "response.shape": [
        error("message", {}),
        error("code", "E1"),
        header("content-type", "text/html"),
    ],
}


MESSAGES: dict[str, list[Mutation]] = {
    "ack.gone": [swallows("acp/ack", said={"acked": [{}]})],
    "ack.twice": [result("acp/query", "messages.*.message.status", "delivered")],
    "artifacts": [mail("context", {})],
    "gate": [leaks()],
    "inbox.others": [leaks()],
    "priority": [mail("priority", "normal")],
    "query.stranger": [accepts("acp/query")],
    "query.thread": [result("acp/query", "messages", twice)],
    "respond": [mail("reply_to", "another"), mail("type", "knowledge.push")],
    "send.envelope": [
        mail("protocol", "smtp"),
        mail("from", "aid://example.com/another@1.0.0"),
        mail("policy", {}),
        mail("created_at", "yesterday"),
    ],
    "send.from": [result("acp/inbox", "messages", FORGED)],
    "send.id": [result("acp/query", "messages.*.message.id", "1")],
    "status.blocked": [mail("type", "status.update")],
    "status.complete": [mail("type", "status.update")],
    "status.lifecycle": [
        result("acp/send", "message.status", "delivered"),
        result("acp/query", "messages.*.message.status", "pending"),
        result("acp/query", "messages.*.message.status", "read"),
    ],
    "status.update": [mail("type", "status.complete")],
    "type.knowledge-query": [mail("type", "knowledge.push")],
    "type.system-error": [mail("type", "knowledge.push")],
    "approve": [leaks(), result("acp/inbox", "messages", [])],
    "approve.refuse": [leaks(), result("acp/query", "messages.*.message.status", "pending")],
    "broadcast": [result("acp/inbox", "messages", [])],
    "channels": [
        result("acp/channels", "capabilities.inbox", "disabled"),
        result("acp/channels", "channels.*.state", "fine"),
    ],
    "claim": [result("acp/claim", "messages", []), leaks("acp/claim")],
    "claim.acknowledged": [leaks("acp/claim")],
    "client-id": [hears("acp/send", "client_id", None)],
    "dead-letters": [result("acp/deadLetters", "letters", [])],
    "dead-letters.alive": [buries()],
    "dead-letters.others": [buries()],
    "errors.rate-limited": [WRONG, result("acp/query", "messages", twice)],
    "expire": [result("acp/query", "messages.*.message.status", "pending"), leaks()],
    "mesh.gate": [
        leaks(wanted=lambda message: bool(message["policy"]["human_gate"] == "required"))
    ],
    "mesh.message": [mail("from", "aid://example.com/another@1.0.0"), mail("payload", {})],
    "mesh.receipt": [
        result("acp/query", "messages.*.message.status", "pending"),
        result("acp/query", "messages.*.receipts.*.status", "delivered"),
    ],
    "mesh.respond": [mail("reply_to", "another")],
    "replay": [result("acp/replay", "message.payload", {}), refuses("acp/replay")],
    "send.version-minor": [refuses("acp/send", version="1.1.0")],
    "sequence.early": [leaks(), result("acp/inbox", "messages", lambda found: found[:1])],
    "sequence.taken": [accepts("acp/send")],
    "subscribe": [
        result("acp/subscribe", "secret", "same"),
        result("acp/channels", "channels.*.url", None),
        swallows("acp/unsubscribe", said={"removed": True}),
    ],
    "team.assign": [result("acp/team", "task.owner", None), result("acp/team", "tasks", [])],
    "team.block": [
        result("acp/team", "task.status", "open"),
        result("acp/team", "task.blockCode", None),
    ],
    "team.close": [
        accepts("acp/team"),
        swallows("acp/team", acting("close"), {"manifest": {"status": "closed"}}),
    ],
    "team.create": [
        result("acp/team", "manifest.members", lambda members: members[:1]),
        result("acp/team", "manifest.created_by", None),
    ],
    "team.log": [result("acp/team", "lines", [])],
    "team.members": [
        result("acp/team", "manifest.members.*.role", "executor"),
        swallows("acp/team", acting("removeMember"), {"manifest": {}}),
    ],
    "thread.hops": [WRONG, result("acp/query", "messages", twice)],
    "thread.rounds": [WRONG, result("acp/query", "messages", twice)],
    "thread.stranger": [accepts("acp/send")],
    "handoff.approval": [result("acp/handoff", "handoff.status", "validating")],
    "handoff.history": [result("acp/handoff", "history", [])],
    "handoff.unapproved": [result("acp/handoff", "handoff.status", "accepted")],
    "handoff.message": [result("acp/inbox", "messages", [])],
}


def _ids(suite: str, prefix: str) -> list[str]:
    return [id_of(path) for path in (SUITES / suite).glob(f"{prefix}*{SUFFIX}")]


def _of_a_type(prefix: str, method: str) -> dict[str, list[Mutation]]:
    """The tests of one type each: a node that doesn't know it."""
    return {
        id: [refuses(method, type=id.removeprefix(prefix).replace("-", "_"))]
        for id in _ids("cacp-2.0", prefix)
    }


CACP |= _of_a_type("contract.type-", "contract/propose")
CACP |= _of_a_type("context.type-", "context/share")
JSON_RPC = {id: [WRONG] for id in _ids("json-rpc-2.0", "error.")} | JSON_RPC

MESSAGES = (
    {
        id: [accepts(method)]
        for prefix, method in {
            "approve.": "acp/approve",
            "broadcast.": "acp/send",
            "handoff.": "acp/handoff",
            "replay.": "acp/replay",
            "respond.": "acp/respond",
            "send.": "acp/send",
            "subscribe.": "acp/subscribe",
            "team.": "acp/team",
        }.items()
        for id in _ids("acp-messages", prefix)
    }
    | {
        f"handoff.{step}": [result("acp/handoff", "handoff.status", "draft")]
        for step in ("propose", "accept", "activate", "complete", "reject")
    }
    | MESSAGES
)

MUTATIONS: dict[str, list[Mutation]] = {
    **{f"acp-messages/{id}": mutations for id, mutations in MESSAGES.items()},
    **{f"cacp-2.0/{id}": mutations for id, mutations in CACP.items()},
    **{f"json-rpc-2.0/{id}": mutations for id, mutations in JSON_RPC.items()},
}
