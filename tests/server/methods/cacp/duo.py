"""Two agents on one project of a node without a process."""

from typing import Any

from server.auth.authenticator import Caller
from tests.support.in_process_node import ANA, BEN, InProcessNode

CONTENT = {"path": "/a"}


class Duo:
    """Two agents on one project of a node: ana for api, ben for web."""

    def __init__(self, desk: InProcessNode) -> None:
        self.desk = desk
        repos = [{"name": name, "role": "r", "language": "l"} for name in ("api", "web")]
        made = self.ana("project/create", name="Coupons", objective="o", repos=repos)
        self.project: str = made["projectId"]
        self.ben("project/join", repoName="web")

    def ana(self, method: str, **params: Any) -> Any:
        return self._call(Caller(ANA, "api", "verified", "key"), method, params)

    def ben(self, method: str, **params: Any) -> Any:
        return self._call(Caller(BEN, "web", "verified", "key"), method, params)

    def _call(self, caller: Caller, method: str, params: dict[str, Any]) -> Any:
        if method != "project/create":
            params = {"projectId": self.project, **params}
        return self.desk.call_as(caller, f"cacp/{method}", **params)

    def proposed(self, name: str = "c") -> str:
        given = {"type": "api_endpoint", "name": name, "content": CONTENT}
        return str(self.ana("contract/propose", **given)["contractId"])

    def agreed(self, name: str = "c") -> str:
        contract = self.proposed(name)
        self.ben("contract/respond", contractId=contract, action="agree")
        return contract

    def verified(self, name: str = "c") -> str:
        contract = self.agreed(name)
        for agent in (self.ana, self.ben):
            agent("implementation/complete", contractId=contract, files=["a"])
        self.ben("implementation/verify", contractId=contract, result="success")
        return contract
