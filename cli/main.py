"""The `cacp` command. Commands import what they need when they run: `--help` stays fast."""

import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from cli import acp, clock, comply, invites, keys, peers, thread, tokens, wire
from cli.call import call
from cli.demo import demo
from cli.discover import discover, known, register
from cli.doctor import doctor
from cli.mail import hook, inbox, send
from cli.mcp import mcp
from cli.mesh import mesh
from cli.openrpc import openrpc
from cli.peers_deferred import deferred
from cli.serve import serve
from cli.show import contracts, projects, show, status
from cli.storage import backup, export
from cli.terminal import REFUSED, STATUSES
from cli.watch import watch
from schemas.plain import one_line

app = typer.Typer(
    name="cacp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=STATUSES,
)

RUN, LOOK, CALL, MAIL, MESH, KEEP = "Run", "Look", "Call", "Mail", "Mesh", "Keep"

app.command(rich_help_panel=RUN)(serve)
app.command(rich_help_panel=RUN)(demo)
app.command(rich_help_panel=LOOK)(status)
app.command(rich_help_panel=LOOK)(projects)
app.command(rich_help_panel=LOOK)(contracts)
app.command(rich_help_panel=LOOK)(show)
app.command(rich_help_panel=LOOK)(watch)
app.command(rich_help_panel=LOOK)(discover)
app.command(rich_help_panel=CALL)(call)
app.command(rich_help_panel=CALL)(openrpc)
app.command(rich_help_panel=CALL)(mcp)
app.add_typer(wire.app, rich_help_panel=CALL)
app.command(rich_help_panel=MAIL)(inbox)
app.command(rich_help_panel=MAIL)(send)
app.command(rich_help_panel=MAIL)(acp.approve)
app.command(rich_help_panel=MAIL)(hook)
peers.app.command()(deferred)
app.add_typer(peers.app, rich_help_panel=MESH)
app.add_typer(invites.app, rich_help_panel=MESH)
app.add_typer(clock.app, rich_help_panel=MESH)
app.command(rich_help_panel=MESH)(peers.join)
app.command(rich_help_panel=MESH)(mesh)
app.add_typer(thread.app, rich_help_panel=RUN)
app.add_typer(comply.app, rich_help_panel=RUN)
app.command(rich_help_panel=KEEP)(doctor)
app.command(rich_help_panel=KEEP)(register)
app.command(rich_help_panel=KEEP)(known)
app.command(rich_help_panel=KEEP)(backup)
app.command(rich_help_panel=KEEP)(export)
app.add_typer(acp.app, rich_help_panel=KEEP)
app.add_typer(keys.app, rich_help_panel=KEEP)
app.add_typer(tokens.app, rich_help_panel=KEEP)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"cacp {version('cacp-server')}")
        raise typer.Exit


@app.callback()
def cacp(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Coordinate coding agents that build one feature across many repositories (CACP 2.0).

    \b
    Start here:
      cacp demo                        see two agents at work
      cacp serve --repo backend-api    run your own node
      cacp COMMAND --help              what a command takes, with examples
    """


@cache
def command() -> Callable[..., Any]:
    """All commands with their options, as Typer reads them from their functions: the longest part
    of a start."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Entry point: what typer shows in a box over many lines is one line here."""
    try:
        status = command()(prog_name="cacp", standalone_mode=False)
    except typer.TyperException as error:
        status = error.exit_code
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "cacp"
        if error.format_message():
            problem = one_line(error.format_message()).rstrip(".")
            typer.echo(f"{where}: {problem}; see {where} --help", err=True)
    except typer.Abort:
        status = REFUSED
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
