"""A member of the mesh that attacks one node, and what must hold of the node whatever it is sent.

attack = Attack(alpha, beta)     # two honest nodes; the member shakes hands with alpha
attack.run(seed, messages=100)   # AssertionError says which message broke what
"""

import json
import re
import time
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection, connect
from typing import Any
from uuid import uuid4

from schemas.errors import ErrorCode
from tests.acceptance.shapes import encode
from tests.byzantine.mutation import LEFT_OUT, Mutator
from tests.byzantine.seeds import CONTENT, FILE, SEEDS, Ground, project_sync, sealed
from tests.support.in_process_node import package
from tests.support.mail_agent import agent
from tests.support.mesh import equal, join, project, propose
from tests.support.mesh_member import MeshMember, pulled
from tests.support.node import Node, RpcError, bearer
from tests.support.shared_files import share
from tests.support.waiting import eventually

OURS = {int(ErrorCode.SERVER_ERROR), -32603}
"""Codes by which a node says that it is at fault itself."""
EVIDENCE = {"acp_audit", "breakers", "send_rates", "sqlite_sequence"}
"""Tables that note what was refused, each with a bound of its own."""
DEFERRED = {"set_aside"}
BESIDE = {"digests", "digest_sums", "changes"}
"""Tables that a node writes to beside its callers too; of changes, those by the member count."""
SKIPPED = "skipped"
ANSWER_SECONDS = 20.0
"""No message may hold up its answer for longer, on a slow machine either."""
MEMBER = "mallory"


class Attack:
    """`alpha` is attacked; `beta` is another honest node, which must not notice."""

    def __init__(self, alpha: Node, beta: Node) -> None:
        self.alpha, self.beta = alpha, beta
        self.member = MeshMember(alpha, MEMBER).register()
        self.reader = agent(alpha, "reader")
        self.writer = f"aid://example.com/writer-{uuid4().hex[:8]}@1.0.0"
        self.member.lists(self.member.agent, self.writer)
        self.project = project(alpha, agreementPolicy="any")
        join(alpha, self.project, "alpha")
        join(beta, self.project, "beta")
        self.contract = propose(alpha, self.project, content=CONTENT)
        self.file = share(alpha, self.project, FILE)
        self.handoff = self._handoff()
        self._join_project()
        self.foreign = self._foreign()
        self.sent: list[tuple[str, bytes]] = []
        """Messages that are said again."""
        self.outcomes: dict[str, int] = {}

    def run(self, seed: object, messages: int, left_out: dict[str, str] = LEFT_OUT) -> None:
        """Send so many mutated messages, and check each answer."""
        by = Mutator(seed, self.foreign, left_out)
        eye = connect(f"{self.alpha.db.as_uri()}?mode=ro", uri=True)
        methods = sorted(SEEDS)
        with closing(eye):
            for number in range(messages):
                method = methods[number % len(methods)]
                body = self._body(by, method)
                about = f"seed {seed!r}, message {number}: {method} with {by.done}"
                self.send(eye, body, about)

    def _rows(self, eye: Connection) -> dict[str, int]:
        """How many rows each table has that the member's calls write to."""
        found = rows(eye)
        for name in BESIDE:
            del found[name]
        by_member = "SELECT count(*) FROM changes WHERE actor = ?"
        (found["changes"],) = eye.execute(by_member, (self.member.agent,)).fetchone()
        return found

    def send(self, eye: Connection, body: bytes, about: str) -> None:
        """Send a body as the member, and check what comes of it."""
        before, began = self._rows(eye), time.monotonic()
        answer = self.alpha.raw(body, bearer(self.member.key))
        taken = time.monotonic() - began
        assert taken < ANSWER_SECONDS, f"{about}: it took {taken:.1f} s"
        assert answer.status_code != 500, about
        grown = {name: count - before[name] for name, count in self._rows(eye).items()}
        found = answer.json() if answer.content else []
        batch = found if isinstance(found, list) else [found]
        wrote = False
        for one in batch:
            error = one.get("error")
            assert error is None or error["code"] not in OURS, f"{about}: {error}"
            word = str(error["code"]) if error else _status(one["result"])
            self.outcomes[word] = self.outcomes.get(word, 0) + 1
            wrote |= error is None
        allowed = EVIDENCE | (DEFERRED if wrote else set())
        refused = not wrote or all(_status(one.get("result")) == SKIPPED for one in batch)
        if refused:
            left = {name: more for name, more in grown.items() if more > 0 and name not in allowed}
            assert left == {}, f"{about}: it is refused, and leaves {left}: {body[:2_000]!r}"

    def plain(self, method: str, ground: Ground) -> str | None:
        """Send a message as it is; why it is refused or passed over, None when it is taken."""
        try:
            answer = self.member.call(method, **sealed(ground, SEEDS[method](ground)))
        except RpcError as error:
            return str(error)
        refused = answer.get("refusal") or [
            one for one in answer.get("answers", []) if one.get("error")
        ]
        return str(refused or answer["skipped"]) if refused or answer.get("skipped") else None

    def check(self) -> None:
        """Nothing broke: the log has no fault, every read answers, honest work goes on."""
        faults = [line for line in self.alpha.log.splitlines() if is_fault(line)]
        assert faults == [], faults[:5]
        for node in (self.alpha, self.beta):
            reads_answer(node)
        for node, other in ((self.alpha, self.beta), (self.beta, self.alpha)):
            said = node.call(
                "cacp/context/share",
                projectId=self.project,
                type="decision",
                content={"from": node.url},
            )
            eventually(lambda id=said["packetId"], at=other: _has_packet(at, self.project, id))  # type: ignore[misc]
        eventually(lambda: equal(self.alpha, self.beta))

    # --- what it sends ------------------------------------------------------------------------

    def _body(self, by: Mutator, method: str) -> bytes:
        if self.sent and by.chance.random() < 0.05:
            by.done = ["said again"]
            return by.chance.choice(self.sent)[1]
        request = self._request(by, method)
        if by.chance.random() < 0.1:
            others = [self._request(by, by.chance.choice(sorted(SEEDS))) for _ in range(3)]
            body = encode([request, *others])
        else:
            body = encode(request)
        self.sent.append((method, body))
        return body

    def _request(self, by: Mutator, method: str) -> dict[str, Any]:
        ground = self.ground
        params = sealed(ground, by.mutated(SEEDS[method](ground)))
        if isinstance(params, dict) and by.chance.random() > 0.02:
            params = {"source_agent": self.member.agent} | params
        return {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}

    @property
    def ground(self) -> Ground:
        return Ground(
            now=time.time_ns() // 1000,
            node=str(self.alpha.settings["agent_id"]),
            member=self.member.agent,
            name=MEMBER,
            key=self.member.signing,
            project=self.project,
            contract=self.contract,
            file=self.file,
            handoff=self.handoff,
            reader=self.reader.id,
            writer=self.writer,
        )

    def _join_project(self) -> None:
        """Have a repo of the project, and hold it."""
        ground = self.ground
        self.member.call("cacp/project/sync", **sealed(ground, project_sync(ground)))

    def _handoff(self) -> str:
        whole = package(f"task-{uuid4()}")
        made = self.reader.call(
            "handoff", action="initiate", to=self.writer, reason="r", package=whole
        )
        return str(made["handoff"]["handoffId"])

    def _foreign(self) -> dict[str, list[Any]]:
        """What others have said and are called."""
        alone = project(self.alpha)
        honest = [
            pulled(self.member, "project", self.project, self.project),
            pulled(self.member, "contract", self.project, self.contract),
        ]
        signatures = [one["signature"] for one in honest[1]["facts"]]
        honest_agents = [str(node.settings["agent_id"]) for node in (self.alpha, self.beta)]
        return {
            "agents": [*honest_agents, self.reader.id, self.writer, "aid://example.net/nobody@1"],
            "projects": [self.project, alone, str(uuid4())],
            "ids": [self.contract, self.handoff, self.project, str(uuid4()), "é" * 150],
            "signatures": signatures,
            "subtrees": [*honest, honest[1]["facts"], honest[0]["registers"]["repos"]],
        }


def rows(eye: Connection) -> dict[str, int]:
    """How many rows each table has, but for those of the search, which follow from others."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search_%'"
    names = eye.execute(tables).fetchall()
    count = "SELECT count(*) FROM "
    return {name: eye.execute(f"{count}{name}").fetchone()[0] for (name,) in names}


def memory(node: Node) -> int:
    """The resident memory of a node's process, in bytes."""
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def is_fault(line: str) -> bool:
    """Whether a line of a node's log says that the node itself did wrong."""
    try:
        told = json.loads(line)
    except ValueError:
        return "Traceback" in line
    return told.get("level") in ("error", "critical") or "exception" in told


def reads_answer(node: Node) -> None:
    """Every project, and all that is in it, is shown, in results of the published shape."""
    for path in ("/health", "/mesh", "/peers", "/metrics"):
        assert node.get(path).status_code in (200, 503), path
    for one in pages(node, "cacp/project/list", "projects", summary=True):
        at = {"projectId": one["projectId"]}
        node.call("cacp/project/get", **at)
        for contract in pages(node, "cacp/contract/list", "contracts", **at):
            of_it = at | {"contractId": contract["contractId"]}
            for method in ("get", "conflicts"):
                node.call(f"cacp/contract/{method}", **of_it)
        pages(node, "cacp/context/list", "packets", **at)
        pages(node, "cacp/file/list", "files", **at)
        pages(node, "cacp/file/listRequests", "requests", **at)


def pages(node: Node, method: str, member: str, **params: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        answer = node.call(method, **params)
        found += answer[member]
        if answer.get("nextCursor") is None:
            return found
        params["cursor"] = answer["nextCursor"]


def _has_packet(node: Node, project_id: str, packet_id: str) -> bool:
    return (packet_id,) in node.query(
        "SELECT packet_id FROM packets WHERE project_id = ?", project_id
    )


def _status(result: Any) -> str:
    status = result.get("status") if isinstance(result, dict) else None
    return str(status or "answered")
