"""`cacp graph`: who provides contracts to whom in a project, and what a change of one reaches."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.options import JsonOption, KeyOption, ProjectArgument, UrlOption
from cli.page_link import WebOption, print_link
from cli.project_choice import NoSuchName, chosen
from cli.show import every_contract, project_id_of
from cli.terminal import REFUSED, USAGE, fail, print_json
from schemas.plain import one_line

PAGE = 500
Json = dict[str, Any]


def graph(
    project: ProjectArgument,
    contract: Annotated[
        str | None,
        typer.Option(
            metavar="CONTRACT",
            help="Show what a change of this contract reaches: its name, its id, or the beginning "
            "of it.",
        ),
    ] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print a graph in Graphviz's DOT.")] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show which repos provide contracts to which, or what a change of one contract reaches.

    Who provides a contract follows from the repos' roles: a shared repo provides data models, an
    infra repo configurations, a backend all else.

    \b
    Examples:
      cacp graph Coupons
      cacp graph Coupons --contract "POST /coupons/apply"
      cacp graph Coupons --dot | dot -Tsvg > coupons.svg
    """
    if dot and as_json:
        fail(USAGE, "--dot and --json exclude each other")
    with connected(url, key, oversees=True) as node:
        project_id = project_id_of(node, project)
        params: Json = {"projectId": project_id, "limit": PAGE}
        if contract is not None:
            params["contractId"] = _contract_id(node, project_id, contract)
        if web:
            chosen_one = {"contract": params["contractId"]} if contract else {}
            print_link(url, "graph", project_id=project_id, **chosen_one)
            return
        shown = _whole(node, params)
    if as_json:
        print_json(shown)
        return
    lines = dot_lines(shown) if dot else reach_lines(shown) if contract else tree_lines(shown)
    typer.echo("\n".join(lines))


def _contract_id(node: NodeClient, project_id: str, wanted: str) -> str:
    names = {each["contractId"]: each["name"] for each in every_contract(node, project_id)}
    try:
        return chosen(wanted, names, "contract")
    except NoSuchName as error:
        fail(REFUSED, str(error))


def _whole(node: NodeClient, params: Json) -> Json:
    """The result of `cacp/project/graph` with all pages."""
    shown: Json = node.call("cacp/project/graph", params)
    cursor = shown.pop("nextCursor", None)
    if cursor is not None:
        rest = params | {"cursor": cursor}
        shown["contracts"] += node.pages("cacp/project/graph", rest, "contracts")
    return shown


def _names(shown: Json) -> dict[str, str]:
    return {repo["repoId"]: one_line(repo.get("name", repo["repoId"])) for repo in shown["repos"]}


def tree_lines(shown: Json) -> Iterator[str]:
    """Each provider, what it provides, and to whom."""
    from server.domain.matrix_text import SIGNS

    names = _names(shown)
    if not shown["contracts"]:
        yield "The project has no contract yet."
    for repo in shown["repos"]:
        own = [each for each in shown["contracts"] if each["provider"]["repoId"] == repo["repoId"]]
        if not own:
            continue
        yield names[repo["repoId"]]
        for each in own:
            at = each["provider"]
            yield f"  {SIGNS[at['state']]} {one_line(each['name'])} ({each['status']})"
            for cell in each["consumers"]:
                yield f"      → {names[cell['repoId']]}: {cell['state']}"


def reach_lines(shown: Json) -> Iterator[str]:
    """What a change of the chosen contract reaches, step by step."""
    names, reach = _names(shown), shown["reach"]
    itself, *others = reach["contracts"]
    yield f"{one_line(itself['name'])}, which {names[itself['providerId']]} provides"
    if not reach["repos"]:
        yield "  Nobody consumes it."
    for steps in range(1, max((repo["steps"] for repo in reach["repos"]), default=0) + 1):
        reached = [names[repo["repoId"]] for repo in reach["repos"] if repo["steps"] == steps]
        yield f"  {steps} step{'' if steps == 1 else 's'}: {', '.join(reached)}"
        for each in others:
            if each["steps"] == steps:
                yield f"      {names[each['providerId']]} provides {one_line(each['name'])}"


def dot_lines(shown: Json) -> Iterator[str]:
    """The graph for Graphviz; all that a change of a chosen contract reaches is bold."""
    names, reach = _names(shown), shown.get("reach")
    bold = {
        (each["providerId"], repo_id)
        for each in (reach["contracts"] if reach else ())
        for repo_id in each["consumerIds"]
    }
    yield "digraph contracts {"
    yield "  rankdir=LR; node [shape=box];"
    for repo in shown["repos"]:
        yield f"  {_quoted(repo['repoId'])} [label={_quoted(names[repo['repoId']])}];"
    for pair in shown["pairs"]:
        states = ", ".join(f"{count} {state}" for state, count in pair["states"].items())
        what = (
            one_line(pair["contract"]) if "contract" in pair else f"{pair['contracts']} contracts"
        )
        ends = (pair["providerId"], pair["consumerId"])
        style = ", style=bold" if ends in bold else ""
        label = _quoted(f"{what}: {states}")
        yield f"  {_quoted(ends[0])} -> {_quoted(ends[1])} [label={label}{style}];"
    yield "}"


def _quoted(text: str) -> str:
    """Text as a string of DOT.

    >>> print(_quoted('say "hi"'))
    "say \\"hi\\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
