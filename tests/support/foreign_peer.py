"""A CACP 2.0 peer that is no node of ours: a small app with the habits of design §8.

It knows the text of the specification only: whole objects, one request for each POST, no batches,
times without offset, `assigned_agent`, refusals as a result. It replaces what it holds by what is
newer, a whole project too; stamps what it takes with its own clock; and never sends twice.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import uuid4

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from peers.signing import SigningKey
from tests.support.node import free_port
from tests.support.waiting import PATIENCE, eventually

REPO = "mobile-app"
AGENT = "aid://example.com/mobile@1.0.0"
Refusals = dict[str, dict[str, Any]]


class ForeignPeerDouble:
    """The peer, on a thread of its own. `projects` is all that it knows; its clock is `skew`
    seconds ahead.

    With `claims_handshake` it answers a mesh handshake, without knowing the mesh token.

    `meanwhile` has what its agent does, once, after it has taken a call of a method and before the
    answer leaves; `refuses` the JSON-RPC error (or, by `result`, the result) that it answers a
    method (or the path of a POST) with instead. `taken` has each (method, params) that it took,
    `calls` the methods of all
    calls, `headers` what came with each, `answered` the bytes of all answers.

    It tells what it does to those in `registry` that it has not given up, and only a registration
    enters anyone: all that it knows is in memory.
    """

    def __init__(
        self, card: Any = None, *, claims_handshake: bool = False, skew: float = 0.0
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.registered: list[dict[str, Any]] = []
        self.registry: dict[str, bool] = {}
        self.answered = 0
        self.projects: dict[str, dict[str, Any]] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.refuses: Refusals = {}
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.calls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.heard = ""
        self._claims_handshake = claims_handshake
        self._skew = timedelta(seconds=skew)
        self.lock = threading.RLock()
        self._card = card if card is not None else card_of()
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
        eventually(lambda: self._server.started)
        return self

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
        answer: dict[str, Any] = httpx.post(url, json=request, timeout=PATIENCE).json()
        return answer

    def contract(self, project_id: str, contract_id: str) -> dict[str, Any] | None:
        known = self.projects.get(project_id, {"contracts": []})["contracts"]
        return next((one for one in known if one["contract_id"] == contract_id), None)

    def repos(self, project_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.projects[project_id]["repos"]
        return found

    def own_repo(self, project_id: str) -> dict[str, Any]:
        return next(one for one in self.repos(project_id) if one["name"] == REPO)

    def create(self, url: str, *others: str) -> str:
        """Make a project of its own repo and others, and broadcast it."""
        project_id = self.make(*others)
        self.send(url, "cacp/project/sync", project=deepcopy(self.projects[project_id]))
        return project_id

    def make(self, *others: str) -> str:
        """The same, and tell nobody."""
        repos = [
            {"repo_id": str(uuid4()), "name": name, "role": "service", "language": "python"}
            for name in (REPO, *others)
        ]
        repos[0]["assigned_agent"] = AGENT
        project = {
            "project_id": str(uuid4()),
            "name": "Theirs",
            "objective": "o",
            "status": "planning",
            "repos": repos,
            "contracts": [],
            "context_history": [],
            "created_at": self.now(),
            "updated_at": self.now(),
        }
        self.projects[str(project["project_id"])] = project
        return str(project["project_id"])

    def join(self, url: str, project_id: str) -> Any:
        """Claim its own repo in its copy, and broadcast that."""
        with self.lock:
            repo = self.own_repo(project_id)
            repo["assigned_agent"] = AGENT
            self._touch(project_id)
            said = deepcopy(repo)
        return self.send(url, "cacp/repo/sync", projectId=project_id, repo=said)

    def propose(self, url: str, project_id: str, content: Any) -> str:
        """Add a contract of its own repo to its copy, and broadcast it."""
        proposed_by = self.own_repo(project_id)["repo_id"]
        contract = self.contract_of(content=content, proposed_by=proposed_by)
        with self.lock:
            self.projects[project_id]["contracts"].append(contract)
            self._touch(project_id)
            said = deepcopy(contract)
        self.send(url, "cacp/contract/sync", projectId=project_id, contract=said)
        return str(contract["contract_id"])

    def contract_of(self, **members: Any) -> dict[str, Any]:
        """A contract as it writes them."""
        return {
            "contract_id": str(uuid4()),
            "type": "api_endpoint",
            "name": "Theirs",
            "version": 1,
            "status": "proposed",
            "content": {"a": 1},
            "implementations": [],
            "history": [],
            "created_at": self.now(),
            "updated_at": self.now(),
        } | members

    def change(self, url: str, project_id: str, contract_id: str, **members: Any) -> Any:
        """Change its copy of a contract, and broadcast it whole."""
        with self.lock:
            contract = self.contract(project_id, contract_id)
            assert contract is not None
            contract |= members | {"updated_at": self.now()}
            self._touch(project_id)
            said = deepcopy(contract)
        return self.send(url, "cacp/contract/sync", projectId=project_id, contract=said)

    def rename(self, url: str, project_id: str, **members: Any) -> Any:
        """Change the header of its copy of a project, and broadcast it whole."""
        with self.lock:
            self.projects[project_id] |= members
            self._touch(project_id)
            said = deepcopy(self.projects[project_id])
        return self.send(url, "cacp/project/sync", project=said)

    def work(self, url: str, project_id: str, contract_id: str, work: Any, **members: Any) -> Any:
        """Say how far its own repo is; the entries of others stay as it knows them. Once all repos
        are complete the contract is implemented."""
        with self.lock:
            contract = self.contract(project_id, contract_id)
            assert contract is not None
            own = work | {"started_at": self.now()}
            others = [
                one for one in contract["implementations"] if one["repo_id"] != own["repo_id"]
            ]
            entries = [*others, own]
            built = [one for one in entries if one["status"] == "complete"]
            if len(built) == len(self.repos(project_id)):
                members = {"status": "implemented"} | members
            contract |= members | {"implementations": entries, "updated_at": self.now()}
            self._touch(project_id)
            said = deepcopy(contract)
        return self.send(url, "cacp/contract/sync", projectId=project_id, contract=said)

    def say(self, url: str, project_id: str, packet_id: str, content: Any) -> Any:
        """Share a context packet of its agent."""
        packet = {
            "packet_id": packet_id,
            "type": "question",
            "from_repo": self.own_repo(project_id)["repo_id"],
            "from_agent": AGENT,
            "content": content,
            "timestamp": self.now(),
        }
        with self.lock:
            history = self.projects[project_id]["context_history"]
            if all(one["packet_id"] != packet_id for one in history):
                history.append(packet)
            self._touch(project_id)
        return self.send(url, "cacp/context/sync", projectId=project_id, packet=packet)

    def forget(self) -> None:
        """What a start of it does."""
        with self.lock:
            self.projects.clear()
            self.registry.clear()

    def give_up(self) -> None:
        """What three calls that failed make it do, for good."""
        self.registry = dict.fromkeys(self.registry, False)

    def now(self) -> str:
        """The time of its clock, as it writes times."""
        return (datetime.now(UTC) + self._skew).replace(tzinfo=None).isoformat()

    # --- what it answers ----------------------------------------------------------------------

    async def _agent_card(self, request: Request) -> Response:
        return JSONResponse(self._card)

    async def _register(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        if refusal := self.refuses.get("/peers/register"):
            return JSONResponse({"detail": refusal["message"]}, refusal["http"])
        said = await request.json()
        self.registered.append(said)
        self.registry[said["agentId"]] = True
        return JSONResponse({"status": "registered"})

    async def _hello(self, request: Request) -> Response:
        self.heard += (await request.body()).decode()
        if not self._claims_handshake:
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
        method, params = call["method"], call["params"]
        self.headers.append(dict(request.headers))
        self.calls.append(method)
        take: Callable[[dict[str, Any]], Any] | None = {
            "cacp/project/get": self._get,
            "cacp/project/list": self._list,
            "cacp/contract/get": self._get_contract,
            "cacp/peer/announce": lambda _: {"status": "acknowledged"},
            "cacp/project/sync": self._project,
            "cacp/contract/sync": self._contract,
            "cacp/context/sync": self._context,
            "cacp/repo/sync": self._repo,
        }.get(method)
        head = {"jsonrpc": "2.0", "id": call["id"]}
        if refusal := self.refuses.get(method):
            return JSONResponse(
                head | (refusal if "result" in refusal else {"error": refusal}),
                refusal.get("http", 200),
            )
        if take is None:
            return JSONResponse(head | {"error": {"code": -32601, "message": "Method not found"}})
        try:
            with self.lock:
                result = deepcopy(take(deepcopy(params)))
        except ValueError as error:
            said = f"Invalid params: {error}"
            return JSONResponse(head | {"error": {"code": -32602, "message": said}})
        except Exception as error:
            said = f"Server error: {error}"
            return JSONResponse(head | {"error": {"code": -32000, "message": said}})
        if result.get("status") in ("created", "updated"):
            self.taken.append((method, params))
        if act := self.meanwhile.pop(method, None):
            await asyncio.to_thread(act)
        answer = JSONResponse(head | {"result": result})
        self.answered += len(answer.body)
        return answer

    def _list(self, params: dict[str, Any]) -> Any:
        known = self.projects.values()
        return {
            "projects": [
                {"projectId": one["project_id"], "name": one["name"], "status": one["status"]}
                for one in known
            ]
        }

    def _get_contract(self, params: dict[str, Any]) -> Any:
        found = self.contract(params["projectId"], params["contractId"])
        if found is None:
            raise ValueError(f"Contract {params['contractId']} not found")
        return {name: member for name, member in found.items() if name != "history"}

    def _get(self, params: dict[str, Any]) -> Any:
        if params["projectId"] not in self.projects:
            raise ValueError(f"Project {params['projectId']} not found")
        return self.projects[params["projectId"]]

    def _project(self, params: dict[str, Any]) -> Any:
        theirs = params["project"]
        known = self.projects.get(theirs["project_id"])
        if known is None:
            self.projects[theirs["project_id"]] = theirs
            return {"status": "created"}
        if not _time(theirs) > _time(known):
            return {"status": "skipped", "reason": "local version is newer"}
        self.projects[theirs["project_id"]] = theirs
        self._touch(theirs["project_id"])
        return {"status": "updated"}

    def _contract(self, params: dict[str, Any]) -> Any:
        theirs = params["contract"]
        project = self.projects.get(params["projectId"])
        if project is None:
            return {"status": "error", "reason": f"Project {params['projectId']} not found"}
        known = self.contract(params["projectId"], theirs["contract_id"])
        if known is None:
            project["contracts"].append(theirs)
            self._touch(params["projectId"])
            return {"status": "created"}
        if not (theirs["version"] > known["version"] or _time(theirs) > _time(known)):
            return {"status": "skipped", "reason": "local version is newer or same"}
        project["contracts"][project["contracts"].index(known)] = theirs | {
            "updated_at": self.now()
        }
        self._touch(params["projectId"])
        return {"status": "updated"}

    def _context(self, params: dict[str, Any]) -> Any:
        project, packet = self.projects.get(params["projectId"]), params["packet"]
        if project is None:
            return {"status": "error", "reason": f"Project {params['projectId']} not found"}
        if any(one["packet_id"] == packet["packet_id"] for one in project["context_history"]):
            return {"status": "skipped", "reason": "already exists"}
        project["context_history"].append(packet)
        self._touch(params["projectId"])
        return {"status": "created"}

    def _repo(self, params: dict[str, Any]) -> Any:
        project, repo = self.projects.get(params["projectId"]), params["repo"]
        if project is None:
            return {"status": "error", "reason": f"Project {params['projectId']} not found"}
        rest = [one for one in project["repos"] if one["repo_id"] != repo["repo_id"]]
        known = len(rest) < len(project["repos"])
        project["repos"] = [*rest, repo]
        self._touch(params["projectId"])
        return {"status": "updated" if known else "created"}

    def _touch(self, project_id: str) -> None:
        self.projects[project_id]["updated_at"] = self.now()


def card_of(cacp: str = "2.0") -> dict[str, Any]:
    """The agent card of a double that speaks a version of CACP."""
    return {
        "name": "Other",
        "protocols": {"cacp": cacp},
        "extensions": {"cacp": {"repo": REPO, "agentId": AGENT}},
    }


def _time(known: dict[str, Any]) -> datetime:
    # Comparing a time with an offset to one without is an error, as it is there.
    return datetime.fromisoformat(known["updated_at"])
