"""`cacp matrix`: how far each repo is with each contract of a project."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.options import JsonOption, KeyOption, ProjectArgument, UrlOption
from cli.page_link import WebOption, print_link
from cli.show import project_id_of
from cli.terminal import print_json
from schemas.plain import one_line

NAME_MAX = 40
PAGE = 500
Json = dict[str, Any]


def matrix(
    project: ProjectArgument,
    repo: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only contracts to which this repo is a party."),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only contracts that are not verified.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show how far each repo is with each contract, and what is missing until all are verified.

    A cell is what is true of a repo's part in a contract: must respond, must revise, objected,
    agreed, building, built, verified, stale (it built an older version), broken (a verification
    failed). A repo without a cell is no party.

    \b
    Examples:
      cacp matrix Coupons
      cacp matrix Coupons --repo backend-api --missing
      cacp matrix Coupons --json | jq .totals
    """
    with connected(url, key, oversees=True) as node:
        project_id = project_id_of(node, project)
        if web:
            filters = {"repo": repo, "show": "missing" if missing else None}
            chosen = {name: value for name, value in filters.items() if value is not None}
            print_link(url, "matrix", project_id=project_id, **chosen)
            return
        shown = _whole(node, project_id, repo, missing)
    if as_json:
        print_json(shown)
        return
    from cli.columns import print_columns
    from server.domain.matrix_text import verdict

    if shown["totals"]["contracts"]:
        print_columns(*table_of(shown), none="No contract matches.")
        typer.echo()
        print_columns(*totals_of(shown), none="")
        typer.echo()
    typer.echo(f"Can it land? {verdict(shown['totals'])}")


def _whole(node: NodeClient, project_id: str, repo: str | None, missing: bool) -> Json:
    """The result of `cacp/project/matrix` with all pages."""
    params: Json = {"projectId": project_id, "missing": missing, "limit": PAGE}
    if repo is not None:
        params["repo"] = repo
    shown: Json = node.call("cacp/project/matrix", params)
    cursor = shown.pop("nextCursor", None)
    if cursor is not None:
        rest = params | {"cursor": cursor}
        shown["contracts"] += node.pages("cacp/project/matrix", rest, "contracts")
    return shown


def table_of(shown: Json) -> tuple[list[str], list[list[str]]]:
    """The heads and rows of a matrix: a column for each repo that has a cell in it."""
    from server.domain.matrix_text import SIGNS, label

    parties = {cell["repoId"] for row in shown["contracts"] for cell in row["cells"]}
    repos = [repo for repo in shown["repos"] if repo["repoId"] in parties]
    heads = ["CONTRACT", "STATUS"]
    heads += [_name(repo) for repo in repos]
    rows = []
    for row in shown["contracts"]:
        cells = {cell["repoId"]: cell for cell in row["cells"]}
        rows.append(
            [
                one_line(row["name"], NAME_MAX),
                f"{row['status']} v{row['version']}",
                *(
                    f"{SIGNS[cells[id]['state']]} {label(cells[id])}" if id in cells else "-"
                    for id in (repo["repoId"] for repo in repos)
                ),
            ]
        )
    return heads, rows


def totals_of(shown: Json) -> tuple[list[str], list[list[str]]]:
    """The heads and rows of what each repo has verified, and must do, of all contracts."""
    from server.domain.matrix_text import duties

    rows = [
        [_name(repo), f"{repo['verified']} of {repo['contracts']}", duties(repo["awaited"]) or "-"]
        for repo in shown["repos"]
        if repo["contracts"]
    ]
    return ["REPO", "VERIFIED", "MUST"], rows


def _name(repo: Json) -> str:
    return one_line(repo.get("name", repo["repoId"]), NAME_MAX)
