"""`cacp project board` and `history`: who must act, what was done, and a project as it was."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, ProjectArgument, UrlOption
from cli.page_link import WebOption, print_link
from cli.show import project_id_of
from cli.terminal import print_json

Json = dict[str, Any]


def board(
    project: ProjectArgument,
    limit: Annotated[
        int, typer.Option(min=1, max=100, help="How many contracts of each status to show at most.")
    ] = 10,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show a project's contracts by status, and which repo each of them waits for.

    The repo for which most contracts wait comes first; of the contracts in a status, the one that
    has waited longest.

    \b
    Examples:
      cacp project board Coupons
      cacp project board Coupons --json | jq -r '.repos[0].name'
    """
    with connected(url, key, oversees=True) as node:
        params = {"projectId": project_id_of(node, project), "limit": limit}
        if web:
            print_link(url, "feature", project_id=str(params["projectId"]))
            return
        shown = node.call("cacp/project/board", params)
    if as_json:
        print_json(shown)
        return
    from cli import project_board_view, views

    out = views.console()
    out.print(project_board_view.board(shown, out.width))


def history(
    project: ProjectArgument,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Show the project as it was at this time, ISO 8601."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100, help="How many steps or contracts to show at most.")
    ] = 30,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show what was done in a project, the newest first; or the project as it was at a time.

    \b
    Examples:
      cacp project history Coupons
      cacp project history Coupons --at 2026-02-21T09:30:00Z
    """
    with connected(url, key, oversees=True) as node:
        params: Json = {"projectId": project_id_of(node, project), "limit": limit}
        if web:
            place = {} if at is None else {"at": at}
            print_link(url, "history", project_id=params["projectId"], **place)
            return
        if at is None:
            shown = node.call("cacp/project/timeline", params)
        else:
            shown = node.call("cacp/project/stateAt", params | {"at": at})
    if as_json:
        print_json(shown)
        return
    from cli import project_board_view, views

    out = views.console()
    if at is None:
        out.print(project_board_view.steps(shown["moments"]))
        if "nextCursor" in shown:
            typer.echo("Older steps follow: give a larger --limit.", err=True)
    else:
        out.print(project_board_view.state_at(shown, out.width))
