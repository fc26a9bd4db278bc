"""`cacp repos`: release or reassign a repo whose agent is gone."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.operator_key import local_operator_key
from cli.options import JsonOption, KeyOption, ProjectArgument, UrlOption
from cli.show import project_id_of
from cli.terminal import print_json
from schemas.plain import one_line

app = typer.Typer(
    name="repos",
    no_args_is_help=True,
    help="Release a repo from its agent, or give it to another.",
)

RepoArgument = Annotated[str, typer.Argument(metavar="REPO", help="The repo's name.")]


@app.command()
def release(
    project: ProjectArgument,
    repo: RepoArgument,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Release a repo from the agent that holds it, so that another agent can join with it.

    The former agent can no longer write for the repo. It can be done by that agent, by the agent
    that created the project, by the operator, and with a human's key for all projects: at the node
    where the agent is at home, or where the project was created.

    Example: cacp repos release "User Auth" backend-api
    """
    with connected(url, key or local_operator_key(url)) as node:
        at = {"projectId": project_id_of(node, project), "repoName": repo}
        released = node.call("cacp/repo/release", at)
    if as_json:
        print_json(released)
        return
    _print(released, f"is released from {one_line(released['formerAgentId'])}")
    if "agentId" in released:
        typer.echo(f"{one_line(released['agentId'])} had claimed it too and holds it now.")
    else:
        typer.echo("An agent with a key for it can join now.")


@app.command()
def reassign(
    project: ProjectArgument,
    repo: RepoArgument,
    agent: Annotated[
        str, typer.Argument(metavar="AID", help="The agent that gets it; it has a key for it here.")
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a repo to another agent, whose home is this node.

    For an agent of another node: `cacp repos release` here, and have the agent join there.

    Example: cacp repos reassign "User Auth" backend-api aid://example.com/new-backend@1.0.0
    """
    with connected(url, key or local_operator_key(url)) as node:
        at = {"projectId": project_id_of(node, project), "repoName": repo}
        given = node.call("cacp/repo/reassign", at | {"agentId": agent})
    if as_json:
        print_json(given)
        return
    _print(given, f"is held by {one_line(given['agentId'])} now")
    if "formerAgentId" in given:
        typer.echo(f"It was held by {one_line(given['formerAgentId'])}.")


def _print(changed: dict[str, Any], how: str) -> None:
    typer.echo(f"Repo {one_line(changed['repoName'])} {how}.")
