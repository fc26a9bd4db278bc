"""`cacp runs`: the runs of the threader that report to a node."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.columns import print_columns
from cli.options import JsonOption, KeyOption, UrlOption
from cli.page_link import WebOption, print_link
from cli.show import project_id_of
from cli.terminal import print_json
from cli.times import ago
from schemas.plain import one_line

HEADS = ("RUN", "STATUS", "TASKS", "STARTED", "REPORTED", "AGENT")


def runs(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Show this run in full; needs --project.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", help="Only runs of this project: name or id.")
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """List the runs of the threader that report to a node, or show one with its tasks.

    A run reports when its manifest names the node under `node`. What runs on this machine, with
    its logs, is in `cacp thread status`.

    \b
    Examples:
      cacp runs
      cacp runs nightly --project "User Auth"
    """
    if run is not None and project is None:
        raise typer.BadParameter("name the project of the run with --project", param_hint="RUN")
    with connected(url, key, oversees=True) as node:
        at = {} if project is None else {"projectId": project_id_of(node, project)}
        if web and run is not None:
            print_link(url, "run", project_id=at["projectId"], run_id=run)
        elif web:
            print_link(url, "runs", **({"project": at["projectId"]} if at else {}))
        elif run is not None:
            _show(node.call("cacp/run/get", at | {"runId": run}), as_json)
        else:
            _list(node, at, as_json)


def _list(node: NodeClient, at: dict[str, str], as_json: bool) -> None:
    listed = node.call("cacp/run/list", at | {"limit": 200})
    if as_json:
        print_json(listed)
        return
    rows = [
        (
            one_line(entry["runId"]),
            entry["status"],
            counts_of(entry),
            ago(entry["startedAt"]),
            ago(entry["reportedAt"]),
            one_line(entry["agentId"]),
        )
        for entry in listed["runs"]
    ]
    print_columns(HEADS, rows, none="No run has reported to this node.", whole=("RUN",))


def _show(run: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(run)
        return
    typer.echo(f"{one_line(run['runId'])}: {run['status']}, {counts_of(run)}")
    typer.echo(f"reported {ago(run['reportedAt'])} by {one_line(run['agentId'])}")
    if "reason" in run:
        typer.echo(one_line(run["reason"]))
    rows = [
        (
            one_line(task["id"]),
            task["status"],
            str(task["attempts"]),
            one_line(task.get("problem", "-")),
        )
        for task in run["tasks"]
    ]
    typer.echo()
    print_columns(("TASK", "STATUS", "ATTEMPTS", "PROBLEM"), rows, none="It has no tasks.")


def counts_of(run: dict[str, Any]) -> str:
    """The tasks by status: `5 DONE, 1 FAILED`.

    >>> counts_of({"counts": {"DONE": 5, "FAILED": 1}})
    '5 DONE, 1 FAILED'
    """
    return ", ".join(f"{count} {name}" for name, count in run["counts"].items()) or "no tasks"
