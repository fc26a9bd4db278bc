"""`cacp status`, `projects`, `contracts` and `show`: what a node holds."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, CallRefused, NodeClient, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.terminal import REFUSED, fail, print_json
from schemas.plain import one_line

PAGE = 500
SAID_MAX = 30
"""How many of a project's newest packets are shown; with --json it is PACKETS_MAX."""
PACKETS_MAX = 1000
UNAUTHENTICATED = -32001


def status(
    url: UrlOption = DEFAULT_URL, key: KeyOption = None, as_json: JsonOption = False
) -> None:
    """Show a node's health, agent, repo, peers and number of entities.

    Without a key it shows only what is public. Exit status 1 when the node is unhealthy.

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
        except CallRefused as error:
            if error.code != UNAUTHENTICATED and health["status"] != "unhealthy":
                raise
            peers, page = None, None
    if as_json:
        print_json({"health": health, "card": card, "peers": peers, "holds": _counts(page)})
    else:
        _print_status(url, health, card, peers, page)
    if health["status"] == "unhealthy":
        raise typer.Exit(REFUSED)


def projects(
    archived: Annotated[
        bool, typer.Option("--archived", help="List archived projects too.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the projects of a node.

    \b
    Examples:
      cacp projects
      cacp projects --archived
      cacp projects --json | jq -r '.[].projectId'
    """
    with connected(url, key) as node:
        listed = list(every_project(node, archived=archived))
        hidden = 0 if listed or archived else len(list(every_project(node, archived=True)))
    if as_json:
        print_json(listed)
        return
    from cli import views

    if listed:
        out = views.console()
        shown = (
            entry | {"status": "archived"} if "archivedAt" in entry else entry for entry in listed
        )
        out.print(views.projects(shown, out.width))
    elif hidden:
        typer.echo(
            f"All projects ({hidden}) are archived: `cacp projects --archived` lists them.",
            err=True,
        )
    else:
        typer.echo(
            "There are no projects yet: `cacp call cacp/project/create` creates one.", err=True
        )


def contracts(
    project: Annotated[
        str, typer.Argument(metavar="PROJECT", help="A project's id, or the beginning of it.")
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the contracts of a project.

    \b
    Examples:
      cacp contracts 0198c0de-1f2a
      cacp contracts 0198c0de-1f2a --json | jq -r '.[].name'
    """
    with connected(url, key) as node:
        project_id = _only_match(project, _projects_like(node, project))
        listed = list(every_contract(node, project_id))
    if as_json:
        print_json(listed)
        return
    from cli import views

    if listed:
        out = views.console()
        out.print(views.contracts(listed, out.width))
    else:
        typer.echo("The project has no contract yet.", err=True)


def show(
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The id of a project or contract, or the beginning of it."
        ),
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the whole history of a project or a contract.

    For a contract: its parties and their responses, the changes of each version and why, questions
    and decisions, who implemented what, and whether the parts work together.

    \b
    Examples:
      cacp show 0198c0de-1f2a
      cacp show 0198c0df --json
    """
    with connected(url, key) as node:
        project_id, contract_id = locate(node, id)
        facts = tell(node, project_id, contract_id, PACKETS_MAX if as_json else SAID_MAX)
    if as_json:
        print_json(facts)
        return
    from cli import views

    out = views.console()
    out.print(story(facts, out.width))


def tell(
    node: NodeClient, project_id: str, contract_id: str | None, most: int = SAID_MAX
) -> dict[str, Any]:
    """What the node knows of a project or contract, in the shapes of its methods.

    For a project it is `{project, packets}`: the project in short with all its contracts, and the
    `most` newest packets. For a contract it is `{project, contract, parties, timeline, packets,
    conflicts}`. The project is fetched in pages: a whole one may be larger than a response may be.
    """
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


def story(facts: dict[str, Any], width: int) -> Any:
    """The result of `tell`, for a terminal of `width` columns."""
    from cli import views
    from cli.story import contract_moments, packet_moments

    project = facts["project"]
    names = views.repo_names(project)
    if "contract" not in facts:
        moments = packet_moments(facts["packets"], names)
        left_out = project["contextCount"] - len(facts["packets"])
        return views.project_story(project, moments, max(0, left_out), width)
    moments = contract_moments(facts["contract"], facts["timeline"], facts["packets"], names)
    return views.contract_story(facts["contract"], facts, project, moments)


def locate(node: NodeClient, wanted: str) -> tuple[str, str | None]:
    """The ids of the project, and of the contract if `wanted` begins a contract's id."""
    wanted = wanted.strip()
    matches: list[tuple[str, str | None]] = [
        (project_id, None) for project_id in _projects_like(node, wanted)
    ]
    if (wanted, None) in matches:
        return wanted, None
    holding = [project["projectId"] for project in every_project(node) if project["contractCount"]]
    pages = node.call_each(
        "cacp/contract/list", [{"projectId": project_id} for project_id in holding]
    )
    for project_id, page in zip(holding, pages, strict=True):
        listed = page["contracts"]
        if "nextCursor" in page:
            listed = every_contract(node, project_id)
        matches += [
            (project_id, contract["contractId"])
            for contract in listed
            if contract["contractId"].startswith(wanted)
        ]
    ids = {contract or project: (project, contract) for project, contract in matches}
    return ids[_only_match(wanted, list(ids))]


def every_project(node: NodeClient, *, archived: bool = False) -> Iterator[dict[str, Any]]:
    """Every project of the node in short, the newest first; archived ones only if asked for."""
    params: dict[str, Any] = {"summary": True, "limit": PAGE}
    if archived:
        params["includeArchived"] = True
    return node.pages("cacp/project/list", params, "projects")


def every_contract(node: NodeClient, project_id: str) -> Iterator[dict[str, Any]]:
    """Every contract of a project in short."""
    return node.pages("cacp/contract/list", {"projectId": project_id}, "contracts")


def _projects_like(node: NodeClient, wanted: str) -> list[str]:
    return [
        project["projectId"]
        for project in every_project(node)
        if project["projectId"].startswith(wanted)
    ]


def _only_match(wanted: str, ids: list[str]) -> str:
    if wanted in ids:
        return wanted
    if not ids:
        fail(REFUSED, f"no id here begins with {one_line(wanted, 60)}")
    if len(ids) > 1:
        some = ", ".join(one_line(id) for id in ids[:3])
        fail(
            REFUSED,
            f"{len(ids)} ids begin with {one_line(wanted, 60)}: {some} …; give more characters",
        )
    return ids[0]


def _counts(page: dict[str, Any] | None) -> dict[str, Any] | None:
    """How many projects and contracts the first page has; `more` when there are more pages."""
    if page is None:
        return None
    listed = page["projects"]
    return {
        "projects": len(listed),
        "contracts": sum(project["contractCount"] for project in listed),
        "more": "nextCursor" in page,
    }


def _print_status(
    url: str, health: Any, card: Any, peers: list[Any] | None, page: dict[str, Any] | None
) -> None:
    from cli import views

    page_counts = _counts(page)
    counts = None
    if page_counts is not None and peers is not None:
        counts = ", ".join(
            (
                views.count(page_counts["projects"], "project"),
                views.count(page_counts["contracts"], "contract"),
                views.count(len(peers), "peer"),
            )
        )
        counts += f" (in its first {PAGE} projects)" if page_counts["more"] else ""
    out = views.console()
    out.print(views.node(url, health, card, counts))
    if peers:
        out.print()
        out.print(views.peers(peers))
    if counts is None and health["status"] != "unhealthy":
        typer.echo("Its projects and peers need a key: --key or CACP_KEY.", err=True)
