"""`cacp status`, `projects`, `contracts` and `show`: what a node holds."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.casing import camel
from cli.client import DEFAULT_URL, CallRefused, NodeClient, connected
from cli.options import JsonOption, KeyOption, ProjectArgument, UrlOption
from cli.page_link import WebOption, print_link
from cli.project_choice import NoSuchName, chosen
from cli.terminal import REFUSED, fail, print_json

PAGE = 500
SAID_MAX = 30
"""How many of a project's newest packets are shown; with --json it is PACKETS_MAX."""
PACKETS_MAX = 1000
UNAUTHENTICATED = -32001
METHOD_NOT_FOUND = -32601
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def status(
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show a node's health, agent, repo, peers and number of entities.

    Without a key it shows only what is public. Exit status 1 when the node is unhealthy.

    \b
    Examples:
      cacp status
      cacp status --url https://node.example.com --json
    """
    if web:
        print_link(url, "health")
        return
    with connected(url, key, oversees=True) as node:
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
    web: WebOption = False,
) -> None:
    """List the projects of a node.

    \b
    Examples:
      cacp projects
      cacp projects --archived
      cacp projects --json | jq -r '.[].projectId'
    """
    if web:
        print_link(url, "projects")
        return
    with connected(url, key, oversees=True) as node:
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
    project: ProjectArgument,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """List the contracts of a project.

    \b
    Examples:
      cacp contracts Coupons
      cacp contracts 0198c0de-1f2a --json | jq -r '.[].name'
    """
    with connected(url, key, oversees=True) as node:
        project_id = project_id_of(node, project)
        if web:
            print_link(url, "feature", project_id=project_id)
            return
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
            metavar="ID",
            help="The name of a project or contract, its id, or the beginning of it.",
        ),
    ],
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show the whole history of a project or a contract.

    For a contract: its parties and their responses, the changes of each version and why, questions
    and decisions, who implemented what, and whether the parts work together.

    \b
    Examples:
      cacp show Coupons
      cacp show 0198c0df --json
    """
    with connected(url, key, oversees=True) as node:
        project_id, contract_id = locate(node, id)
        if web and contract_id is None:
            print_link(url, "feature", project_id=project_id)
            return
        if web and contract_id is not None:
            print_link(url, "contract", project_id=project_id, contract_id=contract_id)
            return
        facts = tell(node, project_id, contract_id, PACKETS_MAX if as_json else SAID_MAX)
    if as_json:
        print_json(camel(facts))
        return
    from cli import views

    out = views.console()
    out.print(story(facts, out.width))


def tell(
    node: NodeClient, project_id: str, contract_id: str | None, most: int = SAID_MAX
) -> dict[str, Any]:
    """What the node knows of a project or contract, in the shapes of its methods.

    For a project it is `{project, packets}`: the project in short with all its contracts, and the
    `most` newest packets. For a contract it is `{project, contract, parties, timeline, proof,
    packets, conflicts}`. The project is fetched in pages: a whole one may be larger than a
    response may be.
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
        "proof": _proof(node, which),
        "packets": node.call("cacp/context/list", which | {"limit": PACKETS_MAX})["packets"],
        "conflicts": node.call("cacp/contract/conflicts", which)["conflicts"],
    }


def _proof(node: NodeClient, which: dict[str, str]) -> dict[str, Any] | None:
    """The receipts of a contract and what they lack; None of a node of an earlier release."""
    try:
        listed: dict[str, Any] = node.call("cacp/receipt/list", which)
    except CallRefused as refused:
        if refused.code != METHOD_NOT_FOUND:
            raise
        return None
    return listed


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
    return views.contract_story(facts["contract"], facts, project, moments, width)


def locate(node: NodeClient, wanted: str) -> tuple[str, str | None]:
    """The ids of the project, and of the contract if `wanted` is one: see `cli.project_choice`.
    Ends the command when it names nothing, or several."""
    names = project_names(node)
    if wanted.strip() in names:
        return wanted.strip(), None
    project_of: dict[str, str] = {}
    pages = node.call_each("cacp/contract/list", [{"projectId": id} for id in names])
    for project_id, page in zip([*names], pages, strict=True):
        listed = page["contracts"]
        if "nextCursor" in page:
            listed = every_contract(node, project_id)
        for contract in listed:
            project_of[contract["contractId"]] = project_id
            names[contract["contractId"]] = contract["name"]
    id = _chosen(wanted, names, "project or contract")
    return (project_of[id], id) if id in project_of else (id, None)


def locate_contract(node: NodeClient, wanted: str, status: int = REFUSED) -> tuple[str, str]:
    """The ids of the project and of the contract that `wanted` is, as `locate`. Ends the command,
    with `status`, when it is a project."""
    project_id, contract_id = locate(node, wanted)
    if contract_id is None:
        fail(status, f"{wanted} is a project: name one of its contracts")
    return project_id, contract_id


def project_id_of(node: NodeClient, wanted: str) -> str:
    """The id of the project that `wanted` is: see `cli.project_choice`. Ends the command when it
    names none, or several. A whole id is taken as it is: the node knows whether it was deleted."""
    if UUID.fullmatch(wanted):
        return wanted
    return _chosen(wanted, project_names(node), "project")


def project_names(node: NodeClient) -> dict[str, str]:
    """The name of each project of the node, archived or not, by its id."""
    listed = every_project(node, archived=True)
    return {project["projectId"]: project["name"] for project in listed}


def every_project(node: NodeClient, *, archived: bool = False) -> Iterator[dict[str, Any]]:
    """Every project of the node in short, the newest first; archived ones only if asked for."""
    params: dict[str, Any] = {"summary": True, "limit": PAGE}
    if archived:
        params["includeArchived"] = True
    return node.pages("cacp/project/list", params, "projects")


def every_contract(node: NodeClient, project_id: str) -> Iterator[dict[str, Any]]:
    """Every contract of a project in short."""
    return node.pages("cacp/contract/list", {"projectId": project_id}, "contracts")


def _chosen(wanted: str, names: dict[str, str], kind: str) -> str:
    try:
        return chosen(wanted, names, kind)
    except NoSuchName as error:
        fail(REFUSED, str(error))


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
