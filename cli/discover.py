"""`cacp discover`, `cacp register`, `cacp known`: find agents by ADP and be found (CACP 2.0)."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, KeyOption, UrlOption, connected
from cli.terminal import JsonOption, print_json
from schemas.plain import clean


def discover(
    query: Annotated[
        str, typer.Argument(help="Words of a name, description or capability; none finds all.")
    ] = "",
    protocol: Annotated[
        str, typer.Option(help="Only agents that speak this; an empty one takes any.")
    ] = "cacp",
    limit: Annotated[int, typer.Option(min=1, max=100, help="Agents, at most.")] = 20,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for agents at the node's ADP exchange.

    That is the one that CACP_ADP_URL names, or the node itself with CACP_EXCHANGE. What it shows
    are the agents' own words.

    Example: cacp discover "frontend typescript"
    """
    filters = {"protocols": [protocol]} if protocol else {}
    with connected(url, key) as node:
        found = node.post("/adp/search", {"query": query, "filters": filters, "limit": limit})
    listings = found["results"]
    if as_json:
        print_json(listings)
        return
    from cli import views

    views.console().print(views.listings(listings))


def register(url: UrlOption = DEFAULT_URL, key: KeyOption = None) -> None:
    """Register the node at its ADP exchange, now and once.

    With CACP_ADP_REGISTER the node does it by itself, and stays registered.

    Example: cacp register
    """
    with connected(url, key) as node:
        aid = node.post("/adp/register", {})["manifest"]["aid"]
    typer.echo(f"{clean(aid)} is registered.", err=True)


def known(
    other: Annotated[str, typer.Argument(metavar="NODE_URL", help="The node to read from.")],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have another node take this one as known, and print the key that it gives for an hour.

    The other node finds this one in ADP, and asks it back. The key reads, and does nothing else.

    Example: CACP_KEY=$(cacp known https://cacp.example) cacp projects --url https://cacp.example
    """
    with connected(url, key) as node:
        granted: dict[str, Any] = node.post("/adp/known", {"url": other})
    if as_json:
        print_json(granted)
        return
    typer.echo(f"Good for {granted['expiresIn'] // 60} minutes, for reading:", err=True)
    typer.echo(clean(granted["key"]))
