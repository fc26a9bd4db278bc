"""`cacp compat`: what a change of a contract breaks, from two files."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import JsonOption
from cli.terminal import REFUSED, USAGE, fail, notice, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = dict[str, Any]
SIDES = {"consumer": ("consumer",), "provider": ("provider",), "both": ("consumer", "provider")}


def compat(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The file with the older contract.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The file with the newer one.")],
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
    as_json: JsonOption = False,
) -> None:
    """Tell whether a newer contract breaks those who built to the older one.

    The files hold OpenAPI, AsyncAPI or JSON Schema as JSON or YAML, GraphQL SDL (.graphql),
    protobuf (.proto), or what contracts of CACP hold: an endpoint, or shorthand. Files beside them
    that they refer to are read too; nothing is fetched, and no node is needed.

    Exit status: 0 same or compatible, 1 breaking or unknown, 2 wrong usage.

    \b
    Examples:
      cacp compat openapi-1.yaml openapi-2.yaml
      cacp compat old.json new.json --side both
      cacp compat old.proto new.proto --json | jq -r .verdict
    """
    if side not in SIDES:
        fail(USAGE, f"--side: {side} is none of {', '.join(SIDES)}")
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
    comparison = compare(before, after)
    answer = {"dialect": after.dialect, **comparison.wire()}
    if as_json:
        print_json(answer)
    else:
        from cli import views

        views.console().print(shown(answer))
    if any(answer[name] in ("breaking", "unknown") for name in SIDES[side]):
        raise typer.Exit(REFUSED)


def shown(answer: Json) -> "RenderableType":
    """A comparison, for a terminal."""
    from rich.console import Group
    from rich.text import Text

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
