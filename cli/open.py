"""`cacp open`: the node's page in a browser, signed in by a link that works once."""

import os
import sys
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.options import KeyOption, UrlOption
from cli.page_link import PAGES, page_path
from cli.terminal import notice

OFFERED = sorted(view for view in PAGES if view not in ("thread", "run"))


def open_(
    view: Annotated[
        str,
        typer.Argument(
            metavar="[VIEW]",
            help=f"A view ({', '.join(OFFERED)}), or the path of a page, such as /ui/runs.",
        ),
    ] = "",
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", metavar="PROJECT", help="The project of the view: its name or id."
        ),
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(metavar="CONTRACT", help="The contract to open: its name or id."),
    ] = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the link and open nothing.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
) -> None:
    """Open the node's page in the browser, signed in with your key.

    The browser doesn't get the key, but a link that works once and for a minute. With a person's
    key you can act there. Without a key the page opens as it is: on loopback for reading, elsewhere
    with the form to sign in.

    Where there is no browser, it prints the link.

    \b
    Examples:
      CACP_KEY=cacp_sk_... cacp open
      cacp open matrix --project Coupons
      cacp open --print
    """
    with connected(url, key) as node:
        path = _path(node, view, project, contract)
        if key:
            made = node.post("/ui/links", {})
            link = f"{made['path']}#{made['code']}&next={quote(path, safe='')}"
        else:
            node.get("/live")
            link = path
    whole = url.rstrip("/") + link
    if print_:
        typer.echo(whole)
    elif not _opened(whole):
        minute = ", within a minute and once" if key else ""
        notice(f"there is no browser to open here: open this link in one{minute}")
        typer.echo(whole)


def _path(node: NodeClient, view: str, project: str | None, contract: str | None) -> str:
    """The path of the page to open. Ends the command when it is not complete."""
    from cli.show import locate, project_id_of

    if view.startswith("/"):
        if view != "/ui" and not view.startswith("/ui/"):
            raise typer.BadParameter("the pages of a node begin with /ui", param_hint="VIEW")
        return view
    view = view or ("contract" if contract else "feature" if project else "attention")
    if view not in OFFERED:
        raise typer.BadParameter(f"the views are {', '.join(OFFERED)}", param_hint="VIEW")
    if view == "contract":
        if contract is None:
            raise typer.BadParameter("name the contract", param_hint="--contract")
        project_id, contract_id = locate(node, contract)
        if contract_id is None:
            raise typer.BadParameter(
                f"{contract} is a project, not a contract", param_hint="--contract"
            )
        return page_path(view, project_id=project_id, contract_id=contract_id)
    if "{project_id}" not in PAGES[view]:
        at = {} if project is None else {"project": project_id_of(node, project)}
        return page_path(view, **at)
    if project is None:
        raise typer.BadParameter(f"the view {view} is of a project", param_hint="--project")
    return page_path(view, project_id=project_id_of(node, project))


def _opened(link: str) -> bool:
    """Whether a browser was opened. One in the terminal would not run the page's scripts."""
    import webbrowser

    if not has_display(os.environ, sys.platform):
        return False
    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False


def has_display(variables: Mapping[str, str], platform: str) -> bool:
    """Whether a browser with windows can be opened.

    >>> has_display({"DISPLAY": ":0"}, "linux"), has_display({}, "linux"), has_display({}, "darwin")
    (True, False, True)
    """
    if platform in ("darwin", "win32"):
        return True
    return any(variables.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
