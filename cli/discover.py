"""`cacp discover`, `cacp register`, `cacp known`: find agents over ADP and be found (CACP 2.0)."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.terminal import print_json
from schemas.plain import clean


def discover(
    query: Annotated[
        str,
        typer.Argument(
            help="Words of a name, description or capability; by default all agents match."
        ),
    ] = "",
    protocol: Annotated[
        str, typer.Option(help="Only agents that speak this protocol; '' for any.")
    ] = "cacp",
    limit: Annotated[
        int, typer.Option(min=1, max=100, help="How many agents to list at most.")
    ] = 20,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for agents at the node's ADP exchange.

    The exchange is the one set in CACP_ADP_URL, or the node itself with CACP_EXCHANGE. Names
    and descriptions are the agents' own and have not been verified.

    Example: cacp discover "frontend typescript"
    """
    filters = {"protocols": [protocol]} if protocol else {}
    with connected(url, key) as node:
        answer = node.post("/adp/search", {"query": query, "filters": filters, "limit": limit})
    listings = answer["results"]
    if as_json:
        print_json(listings)
        return
    if not listings:
        typer.echo("The exchange lists no such agent.", err=True)
        return
    from cli import views

    views.console().print(views.listings(listings))


def register(url: UrlOption = DEFAULT_URL, key: KeyOption = None) -> None:
    """Register the node at its ADP exchange, once.

    With CACP_ADP_REGISTER the node registers itself, and stays registered.

    Example: cacp register
    """
    with connected(url, key) as node:
        aid = node.post("/adp/register", {})["manifest"]["aid"]
    typer.echo(f"{clean(aid)} is registered.", err=True)


def known(
    other: Annotated[
        str, typer.Argument(metavar="NODE_URL", help="The node that you want to read from.")
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Get a key to read from another node, valid for an hour, and print it.

    The other node finds this one over ADP, and calls it back to verify it. The key can only read.

    \b
    Example:
      export CACP_KEY=$(cacp known https://cacp.example)
      cacp projects --url https://cacp.example
    """
    with connected(url, key) as node:
        granted: dict[str, Any] = node.post("/adp/known", {"url": other})
    if as_json:
        print_json(granted)
        return
    typer.echo(f"Valid for {granted['expiresIn'] // 60} minutes, for reading:", err=True)
    typer.echo(clean(granted["key"]))
