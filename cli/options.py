"""Options that several commands take, and groups of options that belong together.

Typer reads a command's options from the parameters of its function. A command with many options
groups them in dataclasses, whose fields are declared as such parameters are:

    @dataclass(frozen=True)
    class Limits:
        jobs: Annotated[int, typer.Option("--jobs")] = 4

    @app.command()
    @grouped
    def run(names: Names, limits: Limits) -> None: ...
"""

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from cli.node_url import node_url


def _chosen_url(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """The URL that was given, else that of the node which `cli.node_url` finds."""
    source = ctx.get_parameter_source(param.name or "")
    if ctx.resilient_parsing or source is None or source.name != "DEFAULT":
        return value
    try:
        return node_url(os.environ).url
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="CACP_URL",
        metavar="URL",
        help="The node to call. Without it and CACP_URL: CACP_PORT on this machine, else the node "
        "that runs on CACP_DB or data/cacp.db, else http://127.0.0.1:8080.",
        callback=_chosen_url,
        show_default=False,
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="CACP_KEY",
        metavar="KEY",
        help="The key to call with; none is needed on loopback. "
        "Prefer the variable: other users can see a command's options.",
    ),
]
RunnerKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        envvar="CACP_RUNNER_KEY_FILE",
        metavar="FILE",
        help="The runner's keys, as `cacp keys create --runner` wrote them.",
    ),
]
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        "--database",
        metavar="FILE|URL",
        help="The node's SQLite file, or the postgresql:// URL of its database. By default "
        "CACP_DATABASE_URL, else CACP_DB, or data/cacp.db without both.",
    ),
]
CreateOption = Annotated[
    bool,
    typer.Option("--create", help="Make the database if it isn't there, before the first start."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", envvar="CACP_CONFIG", help="TOML file with any setting of docs/settings.md."
    ),
]


ProjectArgument = Annotated[
    str,
    typer.Argument(metavar="PROJECT", help="A project's name, its id, or the beginning of it."),
]
PeerArgument = Annotated[
    str, typer.Argument(metavar="AID", help="The peer's agent id, as `cacp peers` shows it.")
]
ReasonOption = Annotated[
    str, typer.Option("--reason", help="Why, in one line; other nodes see it.")
]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: each dataclass among its parameters replaced by its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=_KEYWORD))

    @functools.wraps(command)
    def with_groups(**options: Any) -> None:
        for name, group in groups.items():
            members = {field.name: options.pop(field.name) for field in fields(group)}
            options[name] = group(**members)
        command(**options)

    with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {item.name: item.annotation for item in parameters}
    return with_groups


def _parameters_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(name, _KEYWORD, default=parameter.default, annotation=hints[name])
        for name, parameter in inspect.signature(group).parameters.items()
    ]
