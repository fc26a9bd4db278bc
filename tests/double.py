"""A CACP 2.0 peer of another make: a small app that knows the text of the specification only.

It has the habits of design §6: whole objects, one request for each POST, no batches, times without
offset, `assigned_agent`, strings where others send null, refusals as a result, and a whole project
replaced by a newer one. It restamps what it receives.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Self

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from peers.signing import SigningKey
from tests.node import free_port

REPO = "mobile-app"
AGENT = "aid://example.com/mobile@1.0.0"


class Double:
    """The peer, on a thread of its own. `projects` is all that it knows.

    `meanwhile` has what its agent does, once, after it has taken a call of a method and before the
    answer leaves.
    """

    def __init__(self, card: Any = None, *, fishes: bool = False) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.registered: list[dict[str, Any]] = []
        self.projects: dict[str, dict[str, Any]] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.heard = ""
        self._fishes = fishes
        self._card = card if card is not None else self._own_card()
        app = Starlette(
            routes=[
                Route("/", self._rpc, methods=["POST"]),
                Route("/.well-known/agent.json", self._agent_card),
                Route("/peers/register", self._register, methods=["POST"]),
                Route("/peers/hello", self._hello, methods=["POST"]),
            ]
        )
        self._server = uvicorn.Server(
            uvicorn.Config(app, port=self.port, log_config=None, lifespan="off")
        )

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise AssertionError("the double did not start")

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)

    # --- what its agent does ------------------------------------------------------------------

    def send(self, url: str, method: str, **params: Any) -> dict[str, Any]:
        """A call as it makes them: no key, no batch."""
        request = {
            "jsonrpc": "2.0",
            "method": method,
            "params": params | {"source_agent": AGENT},
            "id": "1",
        }
        answer: dict[str, Any] = httpx.post(url, json=request, timeout=10).json()
        return answer

    def contract(self, project_id: str, contract_id: str) -> dict[str, Any] | None:
        known = self.projects.get(project_id, {"contracts": []})["contracts"]
        return next((one for one in known if one["contract_id"] == contract_id), None)

    def change(self, url: str, project_id: str, contract_id: str, **members: Any) -> Any:
        """Change its copy of a contract, and broadcast it whole."""
        contract = self.contract(project_id, contract_id)
        assert contract is not None
        contract |= members | {"updated_at": _now()}
        return self.send(url, "cacp/contract/sync", projectId=project_id, contract=contract)

    def rename(self, url: str, project_id: str, **members: Any) -> Any:
        """Change the header of its copy of a project, and broadcast it whole."""
        self.projects[project_id] |= members | {"updated_at": _now()}
        return self.send(url, "cacp/project/sync", project=self.projects[project_id])

    def repos(self, project_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.projects[project_id]["repos"]
        return found

    def work(self, url: str, project_id: str, contract_id: str, work: Any, **members: Any) -> Any:
        """Say how far its own repo is; the entries of others stay as it knows them."""
        contract = self.contract(project_id, contract_id)
        assert contract is not None
        others = [one for one in contract["implementations"] if one["repo_id"] != work["repo_id"]]
        entries = [*others, work | {"started_at": _now()}]
        return self.change(url, project_id, contract_id, implementations=entries, **members)

    def say(self, url: str, project_id: str, packet_id: str, content: Any) -> Any:
        """Share a context packet of its agent."""
        packet = {
            "packet_id": packet_id,
            "type": "question",
            "from_repo": next(
                one["repo_id"] for one in self.repos(project_id) if one["name"] == REPO
            ),
            "from_agent": AGENT,
            "content": content,
            "timestamp": _now(),
        }
        return self.send(url, "cacp/context/sync", projectId=project_id, packet=packet)

    # --- what it answers ----------------------------------------------------------------------

    async def _agent_card(self, request: Request) -> Response:
        return JSONResponse(self._card)

    async def _register(self, request: Request) -> Response:
        self.registered.append(await request.json())
        return JSONResponse({"status": "registered"})

    async def _hello(self, request: Request) -> Response:
        self.heard += (await request.body()).decode()
        if not self._fishes:
            return Response(status_code=404)
        said = json.loads(self.heard)["introduction"]
        own = {
            "agentId": AGENT,
            "endpoint": self.url,
            "repoName": REPO,
            "publicKey": SigningKey(bytes(32)).public,
            "nonce": said["nonce"],
        }
        return JSONResponse({"introduction": own, "proof": "0" * 64, "signature": "AAAA"})

    async def _rpc(self, request: Request) -> Response:
        call = await request.json()
        assert isinstance(call, dict), "it knows no batches"
        take: Callable[[dict[str, Any]], Any] | None = {
            "cacp/project/get": self._get,
            "cacp/project/sync": self._project,
            "cacp/contract/sync": self._contract,
            "cacp/context/sync": self._context,
            "cacp/repo/sync": lambda params: {"status": "synced"},
        }.get(call["method"])
        head = {"jsonrpc": "2.0", "id": call["id"]}
        if take is None:
            return JSONResponse(head | {"error": {"code": -32601, "message": "Method not found"}})
        try:
            result = take(call["params"])
        except KeyError as error:
            return JSONResponse(head | {"error": {"code": -32602, "message": f"no {error}"}})
        if act := self.meanwhile.pop(call["method"], None):
            await asyncio.to_thread(act)
        return JSONResponse(head | {"result": result})

    def _get(self, params: dict[str, Any]) -> Any:
        return self.projects[params["projectId"]]

    def _project(self, params: dict[str, Any]) -> Any:
        theirs = params["project"]
        known = self.projects.get(theirs["project_id"])
        if known and not _newer(theirs, known):
            return {"status": "skipped", "reason": "not newer"}
        self.projects[theirs["project_id"]] = theirs
        return {"status": "synced"}

    def _contract(self, params: dict[str, Any]) -> Any:
        theirs = params["contract"]
        project = self.projects.get(params["projectId"])
        if project is None:
            return {"status": "error", "reason": "unknown project"}
        known = self.contract(params["projectId"], theirs["contract_id"])
        if known and not _newer(theirs, known):
            return {"status": "skipped", "reason": "not newer"}
        rest = [one for one in project["contracts"] if one is not known]
        project["contracts"] = [*rest, theirs | {"updated_at": _now()}]
        return {"status": "synced"}

    def _context(self, params: dict[str, Any]) -> Any:
        self.projects[params["projectId"]]["context_history"].append(params["packet"])
        return {"status": "synced"}

    def _own_card(self) -> dict[str, Any]:
        return {
            "name": "Other",
            "protocols": {"cacp": "2.0"},
            "extensions": {"cacp": {"repo": REPO, "agentId": AGENT}},
        }


def _now() -> str:
    return datetime.now().isoformat()


def _newer(theirs: dict[str, Any], known: dict[str, Any]) -> bool:
    if theirs.get("version", 0) != known.get("version", 0):
        return bool(theirs.get("version", 0) > known.get("version", 0))
    # Comparing a time with an offset to one without is an error, as it is there.
    return datetime.fromisoformat(theirs["updated_at"]) > datetime.fromisoformat(
        known["updated_at"]
    )
