"""A traitor that real nodes call: it shakes hands with each, and answers as a test says."""

import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any, Self

from tests.acceptance.shapes import encode
from tests.byzantine.honest import decoded
from tests.byzantine.seeds import Ground, project_sync, sealed
from tests.byzantine.traitor import NAME, TOLD, Traitor
from tests.support.mesh_member import MeshMember
from tests.support.node import Node, bearer
from tests.support.scripted_http import Behaviour, ScriptedHttp, answer, body_of

COUNT = "cacp/sync/digest"


class Served:
    """A member of the mesh of some nodes; `ground` is what it speaks about.

    Until a test says otherwise by `behaves`, it holds nothing and tells the right time.
    """

    def __init__(self, nodes: Iterable[Node], ground: Ground) -> None:
        self._ground = ground
        self.traitor = Traitor(Random(1))
        self.server = ScriptedHttp(self._answer)
        self.behaviour: Behaviour | None = None
        self.clock = 0
        """Microseconds that its clock is ahead."""
        self.lies = False
        """Whether it tells of what is not there, and gives anything for it."""
        self.asked = 0
        """How often it was asked for what it holds."""
        self._nodes = list(nodes)
        self._lock = threading.Lock()
        self._members: dict[str, MeshMember] = {}

    @property
    def ground(self) -> Ground:
        return replace(self._ground, now=time.time_ns() // 1000)

    def __enter__(self) -> Self:
        self.server.__enter__()
        for node in self._nodes:
            member = MeshMember(node, NAME, self.server.url)
            member.signing = self.traitor.key
            self._members[node.url] = member.register()
        return self

    def __exit__(self, *of: object) -> None:
        self.server.__exit__(*of)

    def joins(self, node: Node, repo: str = NAME) -> None:
        """Hold a repo in the project."""
        at = replace(self.ground, name=repo)
        said = sealed(at, project_sync(at))
        assert self._members[node.url].call("cacp/project/sync", **said)["status"] != "skipped"

    def says(self, node: Node, message: dict[str, Any]) -> Any:
        """The answer of a node to a message: a result, or an error."""
        return node.raw(encode(message), bearer(self._members[node.url].key)).json()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.behaviour is not None:
            self.asked += 1
            self.behaviour(request)
            return
        body = body_of(request)
        if request.path != "/" or not body:
            answer({}, 404)(request)
            return
        with self._lock:
            self.asked += body.count(COUNT.encode())
            if self.lies:
                text = self.traitor.answer(self.ground, body)
            else:
                text = encode(self._plainly(body))
        answer(text, content_type="application/json")(request)

    def _plainly(self, body: bytes) -> Any:
        answers = []
        for call in decoded(body):
            if call["method"] in TOLD:
                self.traitor.heard.append({"jsonrpc": "2.0", "id": 1} | call)
            result: dict[str, Any] = {"status": "skipped", "reason": "nothing new"}
            if call["method"] == COUNT:
                now = self.ground.now + self.clock
                result = {"time": now, "behind": False, "sums": {}, "leaves": []}
            answers.append({"jsonrpc": "2.0", "id": call.get("id"), "result": result})
        return answers if body[:1] == b"[" else answers[0]
