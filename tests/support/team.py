"""Two agents on one project of a real node: the node's own, for backend-api, and a frontend."""

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from server.auth.authenticator import issue_token
from server.store import tokens
from tests.support.located import connect
from tests.support.node import AGENT, REPO, Node

FRONTEND_AGENT = "aid://example.com/frontend@1.0.0"
FRONTEND = "frontend-app"
REPOS = [
    {"name": REPO, "role": "backend", "language": "python"},
    {"name": FRONTEND, "role": "frontend", "language": "typescript"},
]
CONTENT: dict[str, Any] = {"method": "GET", "path": "/api/v1/users/profile"}

__all__ = ["AGENT", "CONTENT", "FRONTEND", "FRONTEND_AGENT", "REPO", "REPOS", "Team"]


@dataclass
class Team:
    """A fresh project that both agents have joined."""

    node: Node
    key: str
    project: str

    @classmethod
    def on(cls, node: Node, key: str, **settings: Any) -> "Team":
        """A new project; `key` is that of the frontend's agent."""
        made = node.call(
            "cacp/project/create",
            **{"name": "User Auth", "objective": "Login", "repos": REPOS, **settings},
        )
        team = cls(node, key, made["projectId"])
        team.frontend("project/join", repoName=FRONTEND)
        return team

    def backend(self, method: str, /, **params: Any) -> Any:
        """Call `cacp/METHOD` on the project as the backend's agent."""
        return self.node.call(f"cacp/{method}", **{"projectId": self.project, **params})

    def frontend(self, method: str, /, **params: Any) -> Any:
        """Call `cacp/METHOD` on the project as the frontend's agent."""
        given = {"projectId": self.project, **params}
        return self.node.call(f"cacp/{method}", key=self.key, **given)

    def token(self) -> str:
        """A project token, good for an hour, that narrows the node's own agent to the project."""
        now = time.time_ns() // 1000
        given: dict[str, Any] = {
            "project_id": self.project,
            "agent_id": AGENT,
            "expires_at": now + 3_600_000_000,
        }
        with closing(connect(self.node.db)) as db:
            token_id = tokens.add(db, now=now, **given)
            secret = tokens.node_secret(db)
        return issue_token(secret, token_id=token_id, issued_at=now, **given)

    def repo(self, name: str) -> Any:
        """The RepoContext of this name."""
        repos = self.backend("project/get")["repos"]
        return next(repo for repo in repos if repo["name"] == name)

    def repo_id(self, name: str) -> str:
        return str(self.repo(name)["repo_id"])

    # --- a contract, as far as a test needs it ---------------------------------------------------

    def proposed(self, **params: Any) -> str:
        """The id of a contract that the backend has proposed."""
        given = {"type": "api_endpoint", "name": "Get User Profile", "content": CONTENT, **params}
        return str(self.backend("contract/propose", **given)["contractId"])

    def agreed(self, **params: Any) -> str:
        contract = self.proposed(**params)
        self.frontend("contract/respond", contractId=contract, action="agree")
        return contract

    def implemented(self, *, commit: Any = None, **params: Any) -> str:
        contract = self.agreed(**params)
        more = {} if commit is None else {"commit": commit}
        self.backend("implementation/complete", contractId=contract, files=["src/user.py"], **more)
        self.frontend("implementation/complete", contractId=contract, files=["src/user.ts"], **more)
        return contract

    def contract(self, contract: str, **params: Any) -> Any:
        return self.backend("contract/get", contractId=contract, **params)
