"""Two agents bring a contract to its end and do nothing but what the tools tell them."""

import json
import re
from typing import Any

from tests.support.mcp_agent import McpAgent, over_http, run
from tests.support.node import Node
from tests.support.team import CONTENT, Team

STEP = re.compile(r"^- next: (\w+) with `(.*)`((?:\n  - .*)*)$", re.MULTILINE)


async def take(agent: McpAgent, shown: str, **decided: Any) -> str:
    """Take the step that an answer names; `decided` are among what it leaves to the agent."""
    step = STEP.search(shown)
    assert step is not None, shown
    for name in decided:
        assert f"  - {name}: " in step[3], shown
    return await agent.use(step[1], **json.loads(step[2]), **decided)


def test_each_step_is_the_one_that_the_contract_names(node: Node, team: Team) -> None:
    ids = {"projectId": team.project, "contractId": team.proposed()}

    async def play() -> None:
        async with over_http(node) as backend, over_http(node, team.key) as frontend:

            async def look(agent: McpAgent) -> str:
                return await agent.use("cacp_contract_get", **ids)

            assert "None: the contract waits for `frontend-app` to respond." in await look(backend)
            change = {"comment": "Add the name", "suggestedChange": {"body": ["name"]}}
            await take(frontend, await look(frontend), action="request_change", **change)
            asked = await look(backend)
            assert "| Add the name" in asked
            assert '|  "body": [' in asked
            content = {**CONTENT, "body": ["name"]}
            await take(backend, asked, content=content, changeNote="The name, as asked")
            changed = await look(frontend)
            assert '| + body: ["name"]' in changed
            assert "- status: `agreed`" in await take(frontend, changed, action="agree")
            for agent in (backend, frontend):
                await take(agent, await look(agent), files=["src/user"])
            report = {"notes": "500 for an empty name", "failureDetails": {"case": "empty"}}
            await take(frontend, await look(frontend), result="failure", **report)
            for agent in (backend, frontend):
                failed = await look(agent)
                assert "Repair contract" in failed
                assert "| 500 for an empty name" in failed
                assert '|  "case": "empty"' in failed
                await take(agent, failed, notes="An empty name is refused now")
            await take(backend, await look(backend), result="success")
            for agent in (backend, frontend):
                end = await look(agent)
                assert "- status: verified" in end
                assert "None: nothing is open." in end
            told = await frontend.use("cacp_contract_get", **ids, view="timeline")
            assert re.findall(r"^- \S+ (\w+): version 2, round 2", told, re.MULTILINE) == [
                "completed",
                "completed",
                "verified",
            ]

    run(play)
