"""`cacp status`, `projects`, `contracts` and `show`: what a node holds."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, Client, KeyOption, Refused, UrlOption, connected
from cli.terminal import REFUSED, JsonOption, fail, print_json
from schemas.plain import one_line

PAGE = 500
SAID_MAX = 30
"""The newest packets of a project that are shown; with --json PACKETS_MAX."""
PACKETS_MAX = 1000
UNAUTHENTICATED = -32001


def status(
    url: UrlOption = DEFAULT_URL, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """Show how a node is, who it is, what it holds and its peers.

    Exit status 1 when it is unhealthy.

    \b
    Examples:
      cacp status
      cacp status --url https://node.example.com --json
    """
    with connected(url, key) as node:
        health = node.get("/health")
        card = node.get("/.well-known/agent.json")
        try:
            peers = node.get("/peers")["peers"]
            page = node.call("cacp/project/list", {"summary": True, "limit": PAGE})
        except Refused as error:
            if error.code != UNAUTHENTICATED and health["status"] != "unhealthy":
                raise
            peers, page = None, None
    if as_json:
        print_json({"health": health, "card": card, "peers": peers, "holds": _held(page)})
    else:
        _print_status(url, health, card, peers, page)
    if health["status"] == "unhealthy":
        raise typer.Exit(REFUSED)


def projects(
    url: UrlOption = DEFAULT_URL, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """List the projects of a node.

    \b
    Examples:
      cacp projects
      cacp projects --json | jq -r '.[].projectId'
    """
    with connected(url, key) as node:
        found = list(every_project(node))
    if as_json:
        print_json(found)
        return
    from cli import views

    if found:
        out = views.console()
        out.print(views.projects(found, out.width))
    else:
        typer.echo("There is no project yet; `cacp call cacp/project/create` makes one.", err=True)


def contracts(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Its id, or a beginning.")],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the contracts of a project.

    \b
    Examples:
      cacp contracts 0198c0de-1f2a
      cacp contracts 0198c0de-1f2a --json | jq '.[] | select(.status == "proposed")'
    """
    with connected(url, key) as node:
        project_id = _one(project, _projects_like(node, project))
        found = list(every_contract(node, project_id))
    if as_json:
        print_json(found)
        return
    from cli import views

    if found:
        out = views.console()
        out.print(views.contracts(found, out.width))
    else:
        typer.echo("The project has no contract yet.", err=True)


def show(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="Of a project or a contract, or a beginning.")
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the whole story of a project or a contract.

    Of a contract: who is bound and what each answered, what changed from version to version and
    why, what was asked and decided, who built what, and whether it works together.

    \b
    Examples:
      cacp show 0198c0de-1f2a
      cacp show 0198c0df --json
    """
    with connected(url, key) as node:
        project_id, contract_id = locate(node, id)
        told = tell(node, project_id, contract_id, PACKETS_MAX if as_json else SAID_MAX)
    if as_json:
        print_json(told)
        return
    from cli import views

    out = views.console()
    out.print(story(told, out.width))


def tell(
    node: Client, project_id: str, contract_id: str | None, most: int = SAID_MAX
) -> dict[str, Any]:
    """What the node knows: `{project, packets}`, the project in short with all its contracts and
    the `most` newest packets, or `{project, contract, parties, timeline, packets, conflicts}` for a
    contract. A project is never asked for as a whole: that may be more than one answer may."""
    in_short = {"projectId": project_id, "summary": True}
    project = node.call("cacp/project/get", in_short)
    cursor = project.pop("nextCursor", None)
    if contract_id is None:
        if cursor is not None:
            rest = in_short | {"cursor": cursor}
            project["contracts"] += node.pages("cacp/project/get", rest, "contracts")
        newest = {"projectId": project_id, "limit": most}
        return {"project": project, "packets": node.call("cacp/context/list", newest)["packets"]}
    which = {"projectId": project_id, "contractId": contract_id}
    timeline = node.call("cacp/contract/timeline", which)
    return {
        "project": {**project, "contracts": []},
        "contract": node.call("cacp/contract/get", which | {"includeHistory": True}),
        "parties": timeline["parties"],
        "timeline": timeline["timeline"],
        "packets": node.call("cacp/context/list", which | {"limit": PACKETS_MAX})["packets"],
        "conflicts": node.call("cacp/contract/conflicts", which)["conflicts"],
    }


def story(told: dict[str, Any], width: int) -> Any:
    """What `tell` told, for people with a terminal of `width` columns."""
    from cli import views
    from cli.story import contract_moments, packet_moments

    project = told["project"]
    names = views.repo_names(project)
    if "contract" not in told:
        moments = packet_moments(told["packets"], names)
        left_out = project["contextCount"] - len(told["packets"])
        return views.project_story(project, moments, max(0, left_out), width)
    moments = contract_moments(told["contract"], told["timeline"], told["packets"], names)
    return views.contract_story(told["contract"], told, project, moments)


def locate(node: Client, wanted: str) -> tuple[str, str | None]:
    """The project, and the contract if it is one, whose id begins with `wanted`."""
    wanted = wanted.strip()
    found: list[tuple[str, str | None]] = [(one, None) for one in _projects_like(node, wanted)]
    if (wanted, None) in found:
        return wanted, None
    holding = [one["projectId"] for one in every_project(node) if one["contractCount"]]
    pages = node.call_each(
        "cacp/contract/list", [{"projectId": project_id} for project_id in holding]
    )
    for project_id, page in zip(holding, pages, strict=True):
        listed = page["contracts"]
        if "nextCursor" in page:
            listed = every_contract(node, project_id)
        found += [
            (project_id, one["contractId"])
            for one in listed
            if one["contractId"].startswith(wanted)
        ]
    ids = {contract or project: (project, contract) for project, contract in found}
    return ids[_one(wanted, list(ids))]


def every_project(node: Client) -> Iterator[dict[str, Any]]:
    """Every project of the node in short, the newest first."""
    params: dict[str, Any] = {"summary": True, "limit": PAGE}
    return node.pages("cacp/project/list", params, "projects")


def every_contract(node: Client, project_id: str) -> Iterator[dict[str, Any]]:
    """Every contract of a project in short."""
    return node.pages("cacp/contract/list", {"projectId": project_id}, "contracts")


def _projects_like(node: Client, wanted: str) -> list[str]:
    return [one["projectId"] for one in every_project(node) if one["projectId"].startswith(wanted)]


def _one(wanted: str, ids: list[str]) -> str:
    if wanted in ids:
        return wanted
    if not ids:
        fail(REFUSED, f"there is nothing here whose id begins with {one_line(wanted, 60)}")
    if len(ids) > 1:
        some = ", ".join(one_line(id) for id in ids[:3])
        fail(
            REFUSED, f"{len(ids)} ids begin with {one_line(wanted, 60)}: {some} …; give more of it"
        )
    return ids[0]


def _held(page: dict[str, Any] | None) -> dict[str, Any] | None:
    """Counts over the first projects; `more` when the node has others."""
    if page is None:
        return None
    listed = page["projects"]
    return {
        "projects": len(listed),
        "contracts": sum(one["contractCount"] for one in listed),
        "more": "nextCursor" in page,
    }


def _print_status(
    url: str, health: Any, card: Any, peers: list[Any] | None, page: dict[str, Any] | None
) -> None:
    from cli import views

    held = _held(page)
    counts = None
    if held is not None and peers is not None:
        counts = ", ".join(
            (
                views.count(held["projects"], "project"),
                views.count(held["contracts"], "contract"),
                views.count(len(peers), "peer"),
            )
        )
        counts += f" (in its first {PAGE} projects)" if held["more"] else ""
    out = views.console()
    out.print(views.node(url, health, card, counts))
    if peers:
        out.print()
        out.print(views.peers(peers))
    if counts is None and health["status"] != "unhealthy":
        typer.echo("Its projects and peers need a key: --key or CACP_KEY.", err=True)
