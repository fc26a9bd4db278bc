"""`cacp next`: what waits for the caller, and the command that does each (design-next N1)."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.page_link import WebOption, print_link
from cli.show import project_id_of
from cli.terminal import REFUSED, fail, print_json
from schemas.plain import one_line

SOMETHING_WAITS = 4
PAGE = 200
Json = dict[str, Any]


def next_(
    project: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT", help="Only this project: its name, its id, or the beginning of it."
        ),
    ] = None,
    repo: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this repo must do.")
    ] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="Only what is urgent.")] = False,
    everyone: Annotated[
        bool,
        typer.Option(
            "--everyone",
            help="What is open between all agents: what needs a person, then what waits too long.",
        ),
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many items to show at most.")] = 50,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with status 4 when something waits.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show what waits for the caller, the most urgent first, with the command that does it.

    It lists versions to respond to or to revise, contracts to implement, repair or verify,
    questions, lost races, handoffs, approvals and unread mail. The caller is the agent of the key.
    Where an item has several commands, one of them is enough; … stands for what you decide.
    With --everyone it lists what is open between all agents, as the page does: who must act, and
    how many agents wait for it.

    Exit status: 0 done; with --exit-code 0 nothing waits, 4 something waits.

    \b
    Examples:
      cacp next
      cacp next --project Coupons --repo backend-api
      cacp next --everyone
      cacp next --json | jq -r '.items[].summary'
      cacp next --urgent --exit-code || notify-send "An agent waits for you"
    """
    if everyone and (urgent or repo is not None):
        raise typer.BadParameter("--everyone takes neither --repo nor --urgent")
    with connected(url, key) as node:
        chosen = {} if project is None else {"projectId": project_id_of(node, project)}
        if web:
            print_link(url, "attention", **_place(chosen))
            return
        if everyone:
            listing = _listing(node, "cacp/attention/overview", {"limit": PAGE, **chosen}, limit)
            _print_everyone(listing, as_json)
            raise typer.Exit(SOMETHING_WAITS if exit_code and listing["items"] else 0)
        params = {"limit": PAGE, "urgentOnly": urgent, **chosen}
        listing = _listing(node, "cacp/attention/list", params, limit if repo is None else None)
        if repo is not None:
            listing = _of_repo(node, listing, repo, limit)
    if as_json:
        print_json(listing)
    else:
        _print(listing, url, key)
    if exit_code and listing["items"]:
        raise typer.Exit(SOMETHING_WAITS)


def _place(params: Json) -> dict[str, str]:
    """The query of the page that shows what is asked for."""
    return {"project": params["projectId"]} if "projectId" in params else {}


def _listing(node: NodeClient, method: str, params: Json, limit: int | None) -> Json:
    """The result of a method that lists what waits, with `limit` items, or with all."""
    items: list[Json] = []
    while True:
        page = node.call(method, params)
        items += page["items"]
        if "next" not in page or (limit is not None and len(items) >= limit):
            break
        params = params | {"after": page["next"]}
    listing = {name: member for name, member in page.items() if name != "next"}
    return listing | {"items": items[:limit]}


def _of_repo(node: NodeClient, listing: Json, repo: str, limit: int) -> Json:
    """The listing with the items of the repo that has this name or id."""
    ids = {repo, *_repo_ids(node, listing, repo)}
    items = [item for item in listing["items"] if item.get("repoId") in ids]
    counts: dict[str, int] = {}
    for item in items:
        counts[item["kind"]] = counts.get(item["kind"], 0) + 1
    urgent = sum(item["urgency"] == "urgent" for item in items)
    return {"items": items[:limit], "counts": counts, "total": len(items), "urgent": urgent}


def _repo_ids(node: NodeClient, listing: Json, repo: str) -> Iterator[str]:
    """The ids that the repo has in the projects of the items."""
    projects = {item["projectId"] for item in listing["items"] if "projectId" in item}
    wanted = [{"projectId": id, "summary": True} for id in sorted(projects)]
    names: set[str] = set()
    for shown in node.call_each("cacp/project/get", wanted):
        names |= {member["name"] for member in shown["repos"]}
        yield from (member["repo_id"] for member in shown["repos"] if member["name"] == repo)
    known = names | {item.get("repoId") for item in listing["items"]}
    if projects and repo not in known:
        others = ", ".join(sorted(map(one_line, names)))
        fail(REFUSED, f"no repo here is named {one_line(repo, 60)}; something waits in: {others}")


def _print_everyone(listing: Json, as_json: bool) -> None:
    if as_json:
        print_json(listing)
        return
    from cli.columns import print_columns
    from cli.next_everyone import HEADS, rows, summary

    print_columns(HEADS, [*rows(listing["items"])], none="Nothing is open.")
    if listing["items"] or listing["hidden"]:
        typer.echo(summary(listing), err=True)


def _print(listing: Json, url: str, key: str | None) -> None:
    if not listing["items"]:
        own = (
            f"Nothing waits for the own agent of the node at {url}, as which this calls without a "
            "key. For another agent, give its key in CACP_KEY."
        )
        typer.echo("Nothing waits for you." if key else own, err=True)
        return
    from cli.columns import terminal_width
    from cli.method_help import methods
    from cli.next_view import next_text
    from cli.views import console

    types = {
        name: {param["name"]: param["type"] for param in method["params"]}
        for name, method in methods().items()
    }
    # The terminal wraps long commands, so that they can be copied.
    console().print(next_text(listing, types, terminal_width()), soft_wrap=True)
