"""`cacp project`: archive, unarchive and delete a project; and its board and history."""

import sys
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.operator_key import local_operator_key
from cli.options import JsonOption, KeyOption, ProjectArgument, UrlOption
from cli.project_board import board, history
from cli.show import project_id_of
from cli.terminal import REFUSED, USAGE, fail, print_json
from schemas.plain import one_line
from schemas.verification import VERIFIED_BY, VerificationPolicy

app = typer.Typer(
    name="project",
    no_args_is_help=True,
    help="Show who must act in a project and what was done; say what verifies its contracts; "
    "archive, unarchive or delete it.",
)
app.command()(board)
app.command()(history)


@app.command()
def verification(
    project: ProjectArgument,
    policy: Annotated[
        VerificationPolicy,
        typer.Argument(
            metavar="POLICY",
            help="word: the word of a party's agent. receipt: a runner's receipt for each "
            "provider; receipt_both: for each consumer too. independent, independent_both: the "
            "same, of runners that are not the agents that built it.",
        ),
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set what verifies the versions of contracts that are written from now on.

    Versions that are there keep what they have. It can be set by the agent that created the
    project, and by the operator; only the operator and a person may ask for less proof than before.

    \b
    Examples:
      cacp project verification "User Auth" receipt
      cacp project verification 0198c0de independent_both --json
    """
    with connected(url, key or local_operator_key(url)) as node:
        summary = project_summary(node, project)
        params = {"projectId": summary["projectId"], "verificationPolicy": policy}
        changed = node.call("cacp/project/updateVerificationPolicy", params)
    if as_json:
        print_json(changed)
    else:
        by = VERIFIED_BY[changed["verificationPolicy"]]
        typer.echo(f"In project {_named(summary)} new versions are verified by {by}.")


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


@app.command()
def archive(
    project: ProjectArgument,
    yes: YesOption = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a project read-only and leave it out of lists, on every node that has it.

    Nothing is lost: `cacp project unarchive` makes it active again. It can be done by the agent
    that created the project, and by the operator of a node that takes part in it.

    \b
    Examples:
      cacp project archive "User Auth"
      cacp project archive 0198c0de --yes --json
    """
    with connected(url, key or local_operator_key(url)) as node:
        summary = project_summary(node, project)
        if not yes and sys.stdin.isatty():
            _confirm(f"Archive project {_named(summary)}? It can only be read then.")
        _change(node, "archive", summary, as_json)


@app.command()
def unarchive(
    project: ProjectArgument,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an archived project active again.

    Example: cacp project unarchive "User Auth"
    """
    with connected(url, key or local_operator_key(url)) as node:
        _change(node, "unarchive", project_summary(node, project), as_json)


@app.command()
def delete(
    project: ProjectArgument,
    yes: YesOption = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a project for good: its contracts, context and files, on every node that has it.

    A node that is away removes it when it is back. Mail about the project stays. It can be done at
    the node where the project was created, by the agent that created it and by the operator there.
    The freed space of the database file is used for new content.

    \b
    Examples:
      cacp project delete "User Auth"
      cacp project delete 0198c0de --yes --json
    """
    with connected(url, key or local_operator_key(url)) as node:
        summary = project_summary(node, project)
        if not yes:
            if not sys.stdin.isatty():
                fail(USAGE, "deleting is final: give --yes where nobody can be asked")
            contracts = summary["contractCount"]
            count = f"{contracts} contract{'' if contracts == 1 else 's'}"
            _confirm(f"Delete project {_named(summary)} with {count} for good, on every node?")
        _change(node, "delete", summary, as_json)


def project_summary(node: NodeClient, wanted: str) -> dict[str, Any]:
    """The project, archived or not, that `wanted` is (`cli.project_choice`), in short. Ends the
    command if there is none, or several."""
    params = {"projectId": project_id_of(node, wanted), "summary": True}
    summary: dict[str, Any] = node.call("cacp/project/get", params)
    return summary


def _change(node: NodeClient, what: str, summary: dict[str, Any], as_json: bool) -> None:
    changed = node.call(f"cacp/project/{what}", {"projectId": summary["projectId"]})
    if as_json:
        print_json(changed)
        return
    typer.echo(f"Project {_named(summary)} is {changed['status']}.")
    removed = changed.get("removed")
    if removed is not None:
        typer.echo(
            f"Removed here: contracts {removed['contracts']}, context {removed['packets']}, "
            f"files {removed['files']} ({removed['bytes']:,} bytes). Other nodes follow."
        )


def _confirm(question: str) -> None:
    if not typer.confirm(question, err=True):
        fail(REFUSED, "nothing was changed")


def _named(summary: dict[str, Any]) -> str:
    return f"{one_line(summary['name'], 60)} ({summary['projectId']})"
