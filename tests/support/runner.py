"""A runner of a node: it has keys, and signs receipts of runs that a test makes up."""

import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from peers.receipts import signed
from peers.signing import SigningKey
from proof.runner_key import RunnerKeys
from schemas.base import iso
from schemas.receipt import ProofReceipt, ProofRun
from server.store import keys
from tests.support.located import connect
from tests.support.node import Node

CI = "aid://example.com/ci@1.0.0"
COMMIT = "a" * 40

Json = dict[str, Any]
PASSED: Json = {
    "side": "provider",
    "commit": COMMIT,
    "tree": "b" * 40,
    "dirty": False,
    "tool": "verify",
    "command": "make test",
    "exit_code": 0,
    "outcome": "passed",
    "output_digest": "c" * 64,
    "duration": 0,
}
"""What a run says that passed; what it was of is missing."""
UNSIGNED: Json = {
    "contractId": "contract",
    "version": 1,
    "digest": "d" * 64,
    "round": 1,
    "repo": "api",
    "side": "provider",
    "commit": COMMIT,
    "tree": "b" * 40,
    "dirty": False,
    "tool": "verify",
    "exitCode": 0,
    "outcome": "passed",
    "outputDigest": "c" * 64,
    "startedAt": "2026-01-01T00:00:00Z",
    "duration": 0,
    "runner": CI,
    "publicKey": SigningKey(bytes(32)).public,
    "signature": "A" * 86 + "==",
}
"""A receipt that nobody has signed."""


@dataclass
class Runner:
    """A runner whose keys `node` knows."""

    node: Node
    keys: RunnerKeys
    key_id: str

    @classmethod
    def on(
        cls, node: Node, agent: str = CI, repo: str = "", projects: Iterable[str] = ()
    ) -> "Runner":
        """A new runner, entered into the node's database as `cacp keys create --runner` does."""
        made = RunnerKeys.new(agent, repo, keys.new_key())
        with closing(connect(node.db)) as db:
            key_id = keys.add(
                db,
                made.api_key,
                agent_id=agent,
                repo=repo,
                trust="runner",
                public_key=made.signing.public,
                projects=projects,
                now=time.time_ns() // 1000,
            )
        assert key_id is not None
        return cls(node, made, key_id)

    def run(self, project: str, contract: str, repo: str, **members: Any) -> ProofRun:
        """A run that passed just now, on the provider's side of the repo with this id."""
        at = {"projectId": project, "contractId": contract}
        asked = self.node.call("cacp/receipt/list", key=self.keys.api_key, **at)
        given: Json = {
            "contract_id": contract,
            "version": asked["version"],
            "digest": asked["digest"],
            "round": asked["round"],
            "repo": repo,
            "started_at": iso(time.time_ns() // 1000),
            "runner": self.keys.agent_id,
        }
        return ProofRun(**(PASSED | given | members))

    def receipt(self, project: str, contract: str, repo: str, **members: Any) -> ProofReceipt:
        """The receipt of such a run."""
        return signed(self.run(project, contract, repo, **members), self.keys.signing)

    def records(self, project: str, receipt: ProofReceipt, *, key: str | None = None) -> Any:
        """The answer of the node, called with the runner's key or another."""
        at = {"projectId": project, "contractId": receipt.contract_id}
        by = self.keys.api_key if key is None else key
        return self.node.call("cacp/receipt/record", key=by, **at, receipt=receipt.wire())

    def proves(self, project: str, contract: str, repo: str, **members: Any) -> Any:
        """Record the receipt of a run that passed just now."""
        return self.records(project, self.receipt(project, contract, repo, **members))
