"""Whether a person can answer for a repo, said before they try."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from server.auth.authenticator import Caller
from server.methods.base import Context
from server.page.acting import cannot_answer
from tests.support.in_process_node import ANA, BEN, InProcessNode

REPOS = [{"name": "r", "role": "r", "language": "l"}]


def test_only_who_holds_a_repo_can_answer_for_it(tmp_path: Path) -> None:
    with InProcessNode(tmp_path) as node:
        made = node.call("cacp/project/create", ANA, name="n", objective="o", repos=REPOS)

        def why_not(ctx: Context) -> str | None:
            call: Any = SimpleNamespace(ctx=ctx)
            return cannot_answer(call, made["projectId"])

        outcomes = [
            node.run(why_not, Caller(agent, "r", "verified", "key", human=True))
            for agent in (ANA, BEN)
        ]
    assert outcomes[0] is None
    assert "Your key holds no repo" in outcomes[1]
