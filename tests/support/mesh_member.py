"""A peer that a test plays itself: it shakes hands as a node does, and then says what it likes."""

import json
import secrets
import time
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
from uuid_utils import uuid7

from peers import handshake
from peers.signing import SigningKey
from schemas.mesh import Confirm, Hello, Introduction, Signature, Welcome
from server.domain.agents import identity
from server.domain.authorship import statement
from server.domain.canonical import digest
from server.domain.identifiers import repo_id_for
from tests.support.node import Node, RpcError, bearer, error_of

TOKEN = "a mesh token that nobody guesses"
ALPHA = "aid://example.com/alpha@1.0.0"
BOB = "aid://example.com/bob@1.0.0"
GUS = "aid://example.com/gus@1.0.0"
CONTENT: dict[str, Any] = {"path": "/stranger"}
SOME_TIME = 1_700_000_000_000_000


class MeshMember:
    """A peer of `node` named after its repo."""

    def __init__(self, node: Node, name: str, endpoint: str = "http://127.0.0.1:1") -> None:
        self.node = node
        self.name = name
        self.agent = f"aid://example.com/{name}@1.0.0"
        self.endpoint = endpoint
        self.signing = SigningKey(secrets.token_bytes(32))
        self.key: str | None = None

    # --- the handshake ------------------------------------------------------------------------

    def introduction(self) -> Introduction:
        return Introduction.model_construct(
            agent_id=self.agent,
            endpoint=self.endpoint,
            repo_name=self.name,
            public_key=self.signing.public,
            nonce=secrets.token_hex(32),
        )

    def hello(self, secret: str = TOKEN, secret_id: str | None = None) -> httpx.Response:
        self.introduced = self.introduction()
        hello = Hello.model_construct(
            introduction=self.introduced,
            secret_id=secret_id or handshake.token_tag(secret, self.introduced.nonce),
        )
        return self.node.http.post("/peers/hello", json=hello.model_dump(by_alias=True))

    def confirm(self, answer: httpx.Response, secret: str = TOKEN) -> httpx.Response:
        welcome = Welcome.model_validate(answer.json())
        said = handshake.transcript(self.introduced, welcome.introduction)
        self.confirmed = Confirm.model_construct(
            nonce=welcome.introduction.nonce,
            proof=handshake.proof(secret, "caller", said),
            signature=self.signing.sign(handshake.signed("caller", said)),
        ).model_dump(by_alias=True)
        response = self.node.http.post("/peers/confirm", json=self.confirmed)
        if response.status_code == 200:
            self.key = handshake.pair_keys(secret, said).caller
        return response

    def register(self, secret: str = TOKEN, secret_id: str | None = None) -> "MeshMember":
        answer = self.hello(secret, secret_id)
        assert answer.status_code == 200, answer.text
        confirmed = self.confirm(answer, secret)
        assert confirmed.status_code == 200, confirmed.text
        return self

    # --- calls --------------------------------------------------------------------------------

    def call(self, method: str, /, **params: Any) -> Any:
        """The result of a call by its key. Raises RpcError."""
        given = {"source_agent": self.agent} | params
        request = {"jsonrpc": "2.0", "method": method, "params": given, "id": 1}
        answer = self.node.raw(json.dumps(request), bearer(self.key)).json()
        if "error" in answer:
            raise error_of(answer)
        return answer["result"]

    def refused(self, method: str, /, **params: Any) -> RpcError:
        try:
            result = self.call(method, **params)
        except RpcError as error:
            return error
        raise AssertionError(f"it was taken: {result}")

    # --- what it says -------------------------------------------------------------------------

    def signed(self, kind: str, place: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        value = self.signing.sign(statement(kind, place, body))
        return Signature(node=self.agent, value=value).model_dump() | more

    def claim(self, project_id: str, at: int, repo: str | None = None) -> dict[str, Any]:
        repo_id = repo_id_for(project_id, repo or self.name)
        body = {
            "agent_id": self.agent,
            "agent_endpoint": None,
            "claimed_at": at,
            "renewed_at": at,
        }
        return body | {"signature": self.signed("claim", repo_id, body)}

    def repo(
        self, project_id: str, at: int, name: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """A repo as it describes it: its own, which it has claimed, or another."""
        said = {
            "name": name or self.name,
            "role": "service",
            "language": "go",
            "relevant_paths": [],
            "url": None,
            "stamp": at,
        } | {member: more.pop(member) for member in ("role", "language", "url") if member in more}
        return {
            **said,
            "repo_id": repo_id_for(project_id, name or self.name),
            "signature": self.signed("repo", project_id, said),
            "claims": [self.claim(project_id, at)] if name is None else [],
        } | more

    def project(self, project_id: str, at: int = SOME_TIME, **more: Any) -> Any:
        """Tell of a project in which it has claimed the repo of its own name."""
        registers = {
            "name": "Theirs",
            "objective": "o",
            "status": "planning",
            "agreement_policy": "any",
            "created_at": at,
            "stamp": at,
            "repos": [self.repo(project_id, at)],
        } | more
        if "signature" not in registers:
            header = {name: one for name, one in registers.items() if name != "repos"}
            registers["signature"] = self.signed("header", project_id, header)
        whole = {"project_id": project_id, "name": "Theirs"}
        return self.call("cacp/project/sync", project=whole, registers=registers)

    def version(self, project_id: str, stamp: int = SOME_TIME, **more: Any) -> dict[str, Any]:
        """A first version of a contract, which its own repo and `alpha` are parties of."""
        repo_id = repo_id_for(project_id, self.name)
        return {
            "kind": "version",
            "version": 1,
            "digest": digest(CONTENT),
            "stamp": stamp,
            "content": CONTENT,
            "repo_id": repo_id,
            "agent_id": self.agent,
            "parties": [repo_id, repo_id_for(project_id, "alpha")],
            "policy": "any",
            "parent": None,
            "note": None,
        } | more

    def response(self, project_id: str, repo: str, agent: str, **more: Any) -> dict[str, Any]:
        """An agreement to that version."""
        return {
            "kind": "response",
            "version": 1,
            "digest": digest(CONTENT),
            "stamp": SOME_TIME + 1,
            "repo_id": repo_id_for(project_id, repo),
            "agent_id": agent,
            "action": "agree",
            "comment": None,
            "suggested_change": None,
        } | more

    def fact(self, contract: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A fact with this peer's signature."""
        # Members in the order of the model: it is what nodes sign.
        return {"fact": body, "signature": self.signed("fact", contract, body, **more)}

    def contract(self, project_id: str, contract: str, *facts: dict[str, Any], **more: Any) -> Any:
        """Tell of a contract; `type` and `name` say what it is called."""
        called = {"type": "api_endpoint", "name": "Theirs"}
        called |= {name: more.pop(name) for name in called if name in more}
        whole = {**called, "contract_id": contract, "version": 1, "status": "proposed"}
        given: dict[str, Any] = {"projectId": project_id, "contract": whole | {"content": CONTENT}}
        given |= {"facts": list(facts), "createdAt": SOME_TIME} | more
        if "headerSignature" not in given:
            body = {**called, "stamp": given["createdAt"]}
            given["headerSignature"] = self.signed("contract", contract, body)
        return self.call("cacp/contract/sync", **given)

    # --- mail ---------------------------------------------------------------------------------

    def lists(self, *agents: str, stamp: int | None = None) -> Any:
        """Say that these agents are at home here."""
        body = {"agents": list(agents), "stamp": stamp or time.time_ns() // 1000, "epoch": "e"}
        signature = self.signed("directory", identity(self.agent), body)
        listed = {"directory": body, "signature": signature}
        return self.call("acp/sync/agents", listed=listed)

    def letter(self, sender: str, *to: str, **message: Any) -> dict[str, Any]:
        """A letter of a knowledge.push by `sender`; `message` has the members that differ."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        message_id = str(uuid7())
        whole = {
            "id": message_id,
            "protocol": "acp",
            "version": "1.0.0",
            "from": sender,
            "to": list(to),
            "thread_id": message_id,
            "type": "knowledge.push",
            "priority": "normal",
            "status": "pending",
            "payload": {"summary": "hello"},
            "policy": {"visibility": "private", "sensitivity": "low", "human_gate": "none"},
            "created_at": now,
        } | message
        recipients = [identity(one) for one in to]
        return {"message": whole, "hop": 0, "recipients": recipients}

    def carried(self, letter: dict[str, Any], place: str | None = None) -> dict[str, Any]:
        """The letter, signed by this peer for its node, or for another."""
        text = orjson.dumps(letter).decode()
        to = place or identity(str(self.node.settings["agent_id"]))
        return {"text": text, "signature": self.signed("mail", to, {"text": text})}

    def brings(self, letter: dict[str, Any]) -> Any:
        """The node's answer to one letter of this peer's."""
        (answer,) = self.call("acp/sync/mail", messages=[self.carried(letter)])["answers"]
        return {"error": None} | answer


def pulled(stranger: MeshMember, entity: str, project_id: str, entity_id: str) -> dict[str, Any]:
    """The params of the message that carries an entity."""
    wanted = {"entity": entity, "project_id": project_id, "entity_id": entity_id}
    [message] = stranger.call("cacp/sync/pull", entities=[wanted])["messages"]
    found: dict[str, Any] = orjson.loads(orjson.dumps(message["params"]))
    return found
