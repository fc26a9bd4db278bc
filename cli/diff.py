"""`cacp diff`: what changed between two versions of a contract, and whom it breaks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.show import locate_contract
from cli.terminal import print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = dict[str, Any]
EFFECTS = {"compatible": "green", "breaking": "red", "unknown": "yellow", "same": "dim"}


def diff(
    contract: Annotated[
        str,
        typer.Argument(
            metavar="CONTRACT", help="The contract's name, its id, or the beginning of it."
        ),
    ],
    before: Annotated[
        int | None, typer.Option("--from", help="The older version; by default the one before.")
    ] = None,
    after: Annotated[
        int | None, typer.Option("--to", help="The newer version; by default the current one.")
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two versions of a contract, and whom it breaks.

    For each change: where it is, and whether what the provider and the consumer have built still
    fits. Unknown means that the content does not decide it. Then the lines that changed.

    \b
    Examples:
      cacp diff "Get profile"
      cacp diff 0198c0df --from 1 --to 3
      cacp diff 0198c0df --json | jq -r .verdict
    """
    with connected(url, key, oversees=True) as node:
        project_id, contract_id = locate_contract(node, contract)
        params = {"projectId": project_id, "contractId": contract_id, "from": before, "to": after}
        given = {name: value for name, value in params.items() if value is not None}
        compared = node.call("cacp/contract/diff", given)
    if as_json:
        print_json(compared)
        return
    from cli import views

    views.console().print(shown(compared))


def shown(compared: Json) -> "RenderableType":
    """The result of cacp/contract/diff, for a terminal."""
    from rich.console import Group
    from rich.text import Text

    from cli import views

    older, newer = compared["from"], compared["to"]
    parts: list[RenderableType] = [
        Text(f"Version {older['version']} → version {newer['version']}", "bold"),
        Text.assemble("for the provider ", effect(compared["provider"]),
                      ", for the consumer ", effect(compared["consumer"])),
    ]  # fmt: skip
    if compared["changes"]:
        rows = [
            (
                views.data(change["path"]),
                views.data(change["rule"].replace("_", " ")),
                effect(change["provider"]),
                effect(change["consumer"]),
            )
            for change in compared["changes"]
        ]
        parts += ["", views.table("CHANGE", "RULE", "PROVIDER", "CONSUMER", rows=rows)]
    if compared["moreChanges"]:
        parts.append(Text(f"{compared['moreChanges']:,} more changes are not listed", "dim"))
    parts += ["", *_lines(compared["rows"])]
    if compared["moreRows"]:
        parts.append(Text(f"{compared['moreRows']:,} more lines are not shown", "dim"))
    return Group(*parts)


def effect(name: str) -> Any:
    """An effect or verdict in its colour."""
    from rich.text import Text

    return Text(name, EFFECTS.get(name, ""))


def _lines(rows: list[Json]) -> Iterator[Any]:
    from rich.text import Text

    from schemas.plain import clean
    from server.domain.line_diff import unified

    tones = {"-": "red", "+": "green"}
    for mark, line, skipped in unified(rows):
        if line is None:
            yield Text(f"… {skipped:,} equal lines", "dim")
            continue
        text = Text(f"{mark} ", tones.get(mark, "dim"))
        for part in line["parts"]:
            emphasis = " bold" if part["changed"] else ""
            text.append(clean(part["text"]), tones.get(mark, "dim") + emphasis)
        if line["cut"]:
            text.append(f" … {line['cut']:,} more characters", "dim")
        yield text
