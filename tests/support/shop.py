"""A project of four repos on an in-process node, for what is shown of many contracts at once."""

from typing import Any

import orjson

from server.auth.authenticator import Caller
from server.methods import METHODS
from tests.support.in_process_node import InProcessNode
from tests.support.node import check_result

ROLES = {"api": "backend", "web": "frontend", "ios": "mobile", "pay": "backend"}


class Shop:
    """The project, each of whose repos an agent of its name holds."""

    def __init__(self, node: InProcessNode, roles: dict[str, str] = ROLES) -> None:
        self.node = node
        self.callers = {
            repo: Caller(f"aid://example.com/{repo}@1.0.0", repo, "verified", "key")
            for repo in roles
        }
        repos = [{"name": name, "role": role, "language": "x"} for name, role in roles.items()]
        first, *others = roles
        self.project = ""
        made = self.call(first, "project/create", name="Shop", objective="Sell", repos=repos)
        self.project = made["projectId"]
        for repo in others:
            self.call(repo, "project/join", repoName=repo)
        self.ids = dict(node.rows("SELECT name, repo_id FROM repos"))

    def call(self, repo: str, method: str, /, **params: Any) -> Any:
        """Call `cacp/METHOD` on the project as the agent of a repo."""
        declared = METHODS[f"cacp/{method}"]
        project = {"projectId": self.project} if self.project else {}
        given = declared.params.model_validate({**project, **params}, by_alias=True)
        result = self.node.answered(declared, self.callers[repo], given)
        wire = orjson.loads(orjson.dumps(result))
        check_result(declared.name, wire)
        return wire

    def proposed(self, by: str = "api", to: tuple[str, ...] = ("web",), **params: Any) -> str:
        """The id of a contract between a repo and others."""
        given = {"type": "api_endpoint", "name": f"{by} for {', '.join(to)}", "content": {"v": 1}}
        parties = [by, *to]
        made = self.call(by, "contract/propose", **{**given, "parties": parties, **params})
        return str(made["contractId"])

    def agreed(self, by: str = "api", to: tuple[str, ...] = ("web",), **params: Any) -> str:
        contract = self.proposed(by, to, **params)
        for repo in to:
            self.call(repo, "contract/respond", contractId=contract, action="agree")
        return contract

    def built(self, by: str = "api", to: tuple[str, ...] = ("web",), **params: Any) -> str:
        contract = self.agreed(by, to, **params)
        for repo in (by, *to):
            self.call(repo, "implementation/complete", contractId=contract, files=[])
        return contract

    def verified(
        self,
        by: str = "api",
        to: tuple[str, ...] = ("web",),
        result: str = "success",
        **params: Any,
    ) -> str:
        contract = self.built(by, to, **params)
        self.call(to[0], "implementation/verify", contractId=contract, result=result)
        return contract
