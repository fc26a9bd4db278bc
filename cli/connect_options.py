"""The options of `cacp connect` and `cacp disconnect`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from cli.options import DbOption, JsonOption

NAMES = "claude, codex, gemini, opencode or cursor"

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help=f"{NAMES}.")]


@dataclass(frozen=True)
class TargetOptions:
    """Who is connected to which node, and with which key."""

    repo: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The repo that the agent works for; by default the git repository's name.",
        ),
    ] = None
    agent_id: Annotated[
        str | None,
        typer.Option(
            "--agent-id",
            metavar="AID",
            help="The agent's id; by default aid://DOMAIN/REPO@1.0.0 in the domain of the node.",
        ),
    ] = None
    url: Annotated[
        str | None,
        typer.Option(
            envvar="CACP_URL",
            metavar="URL",
            help="The node; by default the one that runs on the database.",
        ),
    ] = None
    db: DbOption = None
    key_file: Annotated[
        str | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Use the key in this file and make none: for a node on another machine.",
        ),
    ] = None


@dataclass(frozen=True)
class ChangeOptions:
    """How the changes are made and shown."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Don't ask. Only at a terminal is there a question.")
    ] = False
    as_json: JsonOption = False
