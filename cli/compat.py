"""`cacp compat`: what a change of a contract breaks, from two files, or a file and a node."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.terminal import REFUSED, USAGE, fail, notice, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = dict[str, Any]
SIDES = {"consumer": ("consumer",), "provider": ("provider",), "both": ("consumer", "provider")}


def compat(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="OLD and NEW, with the older contract and the newer one; with --contract, NEW "
            "alone.",
        ),
    ],
    contract: Annotated[
        str | None,
        typer.Option(
            help="Compare NEW with the current version of this contract of a node: its name, its "
            "id, or the beginning of it."
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(help="What both are written in; by default that is recognised."),
    ] = None,
    side: Annotated[
        str,
        typer.Option(
            help="Whose side decides the exit status: `consumer` (may the provider go ahead?), "
            "`provider` (may consumers go ahead?) or `both`."
        ),
    ] = "consumer",
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell whether a newer contract breaks those who built to the older one.

    The files hold OpenAPI, AsyncAPI or JSON Schema as JSON or YAML, GraphQL SDL (.graphql),
    protobuf (.proto), or what contracts of CACP hold: an endpoint, or shorthand. Files beside them
    that they refer to are read too; nothing is fetched, and no node is needed. With --contract a
    node compares, changes nothing, and names the repos that a change burdens.

    Exit status: 0 same or compatible, 1 breaking or unknown, 2 wrong usage, 3 no node.

    \b
    Examples:
      cacp compat openapi-1.yaml openapi-2.yaml
      cacp compat old.json new.json --side both
      cacp compat old.proto new.proto --json | jq -r .verdict
      cacp compat openapi.yaml --contract "Get profile"
    """
    if side not in SIDES:
        fail(USAGE, f"--side: {side} is none of {', '.join(SIDES)}")
    if len(files) != (1 if contract else 2):
        fail(
            USAGE, "name two files, OLD and NEW; or NEW alone, and with --contract what it changes"
        )
    if contract:
        answer = _by_node(contract, files[0], dialect, url, key)
    else:
        answer = _of_files(files[0], files[1], dialect)
    if as_json:
        print_json(answer)
    else:
        from cli import views

        views.console().print(shown(answer))
    if any(answer[name] in ("breaking", "unknown") for name in SIDES[side]):
        raise typer.Exit(REFUSED)


def _of_files(old: Path, new: Path, dialect: str | None) -> Json:
    from cli.contract_files import load_contract
    from contracts.compare import compare
    from contracts.json_text import path_text
    from contracts.recognise import read

    before, after = (read(load_contract(path), dialect) for path in (old, new))
    for path, interface in ((old, before), (new, after)):
        for problem in interface.problems[:1]:
            where = f"{path} at {path_text(problem.path)}"
            fail(USAGE, f"{where}: {problem.why}")
        for warning in interface.warnings[:5]:
            notice(f"{path} at {path_text(warning.path)}: {warning.why}")
    return {"dialect": after.dialect, **compare(before, after).wire()}


def _by_node(contract: str, new: Path, dialect: str | None, url: str, key: str | None) -> Json:
    from cli.contract_files import load_contract
    from cli.show import locate_contract

    content = load_contract(new)
    with connected(url, key, oversees=True) as node:
        project_id, contract_id = locate_contract(node, contract)
        asked = {"projectId": project_id, "contractId": contract_id, "content": content}
        answer: Json = node.call(
            "cacp/contract/compare", asked | ({"dialect": dialect} if dialect else {})
        )
    return answer


def shown(answer: Json) -> "RenderableType":
    """A comparison, for a terminal."""
    from rich.console import Group
    from rich.text import Text

    from cli import views
    from cli.diff import effect

    parts: list[RenderableType] = [
        Text.assemble(
            (f"{answer['dialect']}: ", "bold"),
            "consumers as built today meet a newer provider: ",
            effect(answer["consumer"]),
        ),
        Text.assemble(
            "a provider as built today meets newer consumers: ", effect(answer["provider"])
        ),
    ]
    if answer.get("concerns"):
        names = ", ".join(views.data(name).plain for name in answer["concerns"])
        parts.append(Text(f"It burdens {names}, against version {answer['against']}."))
    for change in answer["changes"]:
        parts += ["", *_change(change)]
    if answer["moreChanges"]:
        parts.append(Text(f"{answer['moreChanges']:,} more changes are not listed", "dim"))
    return Group(*parts)


def _change(change: Json) -> Iterator[Any]:
    """A change in three lines: whom it breaks and where, what it is, and why."""
    from rich.text import Text

    from cli import views
    from cli.diff import EFFECTS

    breaks = change.get("breaks")
    if breaks is None:
        unsure = "unknown" in (change["consumer"], change["provider"])
        effect, whom = ("unknown", "unknown") if unsure else ("compatible", "breaks nobody")
    else:
        sides = {"both": "both sides", "consumer": "consumers", "provider": "providers"}
        effect, whom = "breaking" if breaks != "provider" else "unknown", f"breaks {sides[breaks]}"
    yield Text.assemble((whom, EFFECTS[effect]), "  ", (views.data(change["path"]).plain, "bold"))
    values = [views.data(change[name]).plain for name in ("before", "after") if name in change]
    what = change["rule"].replace("_", " ")
    yield Text(f"  {what}: {' → '.join(values)}" if values else f"  {what}")
    yield Text(f"  {change['why']}", "dim")
