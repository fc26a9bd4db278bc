"""`cacp mcp`: the same tools over stdio, as a thin client of a node."""

from pathlib import Path

import pytest

from cli.key_file import write_private
from server.mcp_tools.catalog import TOOLS
from tests.cli.run import process
from tests.support.mcp_agent import ERAS, Refused, over_stdio, run
from tests.support.node import Node
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_that_starts_it_works_with_its_key(
    node: Node, team: Team, tmp_path: Path, era: str
) -> None:
    contract = team.proposed()

    async def play() -> None:
        async with over_stdio(node.url, tmp_path, team.key, era) as agent:
            assert [one.name for one in (await agent.client.list_tools()).tools] == list(TOOLS)
            await agent.use(
                "cacp_contract_respond",
                projectId=team.project,
                contractId=contract,
                action="agree",
            )
            shown = await agent.use("cacp_project_get", projectId=team.project)
            assert f"`{FRONTEND}` (`frontend`, `typescript`): held by `{FRONTEND_AGENT}`" in shown
            uri = f"cacp://projects/{team.project}/contracts/{contract}"
            read = (await agent.client.read_resource(uri)).contents[0]
            assert "- status: agreed" in getattr(read, "text", "")

    run(play)
    assert (tmp_path / "mcp.log").read_text() == ""


def test_a_node_that_is_down_or_a_wrong_key_is_told_clearly(node: Node, tmp_path: Path) -> None:
    async def play() -> None:
        async with over_stdio("http://127.0.0.1:9", tmp_path) as agent:
            assert len((await agent.client.list_tools()).tools) == len(TOOLS)
            with pytest.raises(Refused, match=r"no node answers at http://127\.0\.0\.1:9"):
                await agent.use("cacp_project_list")
        async with over_stdio(node.url, tmp_path, "cacp_sk_wrongwrongwrongwrong") as agent:
            with pytest.raises(Refused, match="This key is unknown here"):
                await agent.use("cacp_project_list")

    run(play)


def test_a_key_file_takes_the_place_of_the_variable(node: Node, team: Team, tmp_path: Path) -> None:
    """And one that can't be used never falls back to another identity: each call says why."""
    file = tmp_path / "agent.key"
    write_private(file, f"{team.key}\n")
    options = ("--key-file", str(file))

    async def play(key: str) -> str:
        async with over_stdio(node.url, tmp_path, key, options=options) as agent:
            return await agent.use("cacp_project_get", projectId=team.project)

    async def refused(problem: str) -> None:
        async with over_stdio(node.url, tmp_path, team.key, options=options) as agent:
            with pytest.raises(Refused, match=problem):
                await agent.use("cacp_project_list")

    run(lambda: play("cacp_sk_wrongwrongwrongwrong"))
    file.chmod(0o644)
    run(lambda: refused("is open to other users"))
    file.unlink()
    run(lambda: refused(r"does not exist.*`cacp connect` makes it anew"))


def test_a_key_or_url_that_is_none_ends_it_at_once() -> None:
    done = process("mcp", key="nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cacp: the key is malformed")
    assert process("mcp", "--url", "nope").returncode == 2
