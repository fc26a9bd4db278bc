"""The `cacp` command. Each command imports what it needs when it runs, so that --help is fast."""

import sys
from collections.abc import Callable
from copy import copy
from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, NoReturn

import typer
from typer.models import CommandInfo

from cli import (
    acp,
    clock,
    comply,
    handoff,
    invites,
    keys,
    mock,
    peers,
    project,
    repos,
    thread,
    tokens,
    wire,
)
from cli.activity import activity
from cli.agents import agents
from cli.call import CallCommand, call
from cli.cluster import cluster
from cli.compat import compat
from cli.connect import connect, disconnect
from cli.demo import demo
from cli.diff import diff
from cli.discover import discover, known, register
from cli.doctor import doctor
from cli.graph import graph
from cli.hook_command import hook
from cli.mail import inbox, send
from cli.matrix import matrix
from cli.mcp import mcp
from cli.mesh import mesh
from cli.migrate import migrate
from cli.move import move
from cli.next import next_
from cli.open import open_
from cli.openrpc import openrpc
from cli.probe import probe
from cli.pull import pull
from cli.runs import runs
from cli.search import reindex, search
from cli.serve import serve
from cli.show import contracts, projects, show, status
from cli.storage import backup, export
from cli.terminal import REFUSED, STATUSES
from cli.verify import verify
from cli.watch import watch
from schemas.plain import one_line

app = typer.Typer(
    name="cacp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=STATUSES,
)

RUN, INSPECT, CALL, MAIL, MESH, OPERATE = "Run", "Inspect", "Call", "Mail", "Mesh", "Operate"

app.command(rich_help_panel=RUN)(serve)
app.command(rich_help_panel=RUN)(cluster)
app.command(rich_help_panel=RUN)(demo)
app.command(rich_help_panel=RUN)(verify)
app.command(rich_help_panel=RUN)(connect)
app.command(rich_help_panel=RUN)(disconnect)
app.command("next", rich_help_panel=INSPECT)(next_)
app.command("open", rich_help_panel=INSPECT)(open_)
app.command(rich_help_panel=INSPECT)(status)
app.command(rich_help_panel=INSPECT)(projects)
app.command(rich_help_panel=INSPECT)(contracts)
app.command(rich_help_panel=INSPECT)(show)
app.command(rich_help_panel=INSPECT)(matrix)
app.command(rich_help_panel=INSPECT)(graph)
app.command(rich_help_panel=INSPECT)(diff)
app.command(rich_help_panel=INSPECT)(compat)
app.command(rich_help_panel=INSPECT)(runs)
app.command(rich_help_panel=INSPECT)(activity)
app.command(rich_help_panel=INSPECT)(search)
app.command(rich_help_panel=INSPECT)(agents)
app.command(rich_help_panel=INSPECT)(watch)
app.command(rich_help_panel=INSPECT)(discover)
app.command(rich_help_panel=CALL, cls=CallCommand)(call)
app.command(rich_help_panel=CALL)(openrpc)
app.command(rich_help_panel=CALL)(mcp)
app.add_typer(wire.app, rich_help_panel=CALL)
app.command(rich_help_panel=MAIL)(inbox)
app.command(rich_help_panel=MAIL)(send)
app.command(rich_help_panel=MAIL)(acp.approve)
app.add_typer(handoff.app, rich_help_panel=MAIL)
app.command(rich_help_panel=MAIL)(hook)
app.add_typer(peers.app, rich_help_panel=MESH)
app.add_typer(invites.app, rich_help_panel=MESH)
app.add_typer(clock.app, rich_help_panel=MESH)
app.command(rich_help_panel=MESH)(peers.join)
app.command(rich_help_panel=MESH)(mesh)
app.add_typer(thread.app, rich_help_panel=RUN)
app.add_typer(comply.app, rich_help_panel=RUN)
app.add_typer(mock.app, rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(probe)
app.command(rich_help_panel=RUN)(pull)
app.command(rich_help_panel=OPERATE)(doctor)
app.command(rich_help_panel=OPERATE)(register)
app.command(rich_help_panel=OPERATE)(known)
app.command(rich_help_panel=OPERATE)(backup)
app.command(rich_help_panel=OPERATE)(export)
app.command(rich_help_panel=OPERATE)(migrate)
app.command(rich_help_panel=OPERATE)(move)
app.command(rich_help_panel=OPERATE)(reindex)
app.add_typer(acp.app, rich_help_panel=OPERATE)
app.add_typer(keys.app, rich_help_panel=OPERATE)
app.add_typer(tokens.app, rich_help_panel=OPERATE)
app.add_typer(project.app, rich_help_panel=OPERATE)
app.add_typer(repos.app, rich_help_panel=OPERATE)


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
      cacp COMMAND --help              its options, with examples
    """


def _wrapped(text: str) -> str:
    """A help text with a line for each paragraph, so that it wraps to the terminal's width.

    >>> _wrapped("A command\\nof two lines.\\n\\n\\b\\nExamples:\\n  cacp demo")
    'A command of two lines.\\n\\n\\x08\\nExamples:\\n  cacp demo'
    """
    paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(
        part if part.startswith("\b") else part.replace("\n", " ") for part in paragraphs
    )


def _wrap_help(command: Any) -> None:
    """Unwrap the help of a command and of all its subcommands."""
    command.help = _wrapped(command.help or "")
    for inner in getattr(command, "commands", {}).values():
        _wrap_help(inner)


@cache
def command(name: str = "") -> Callable[..., Any]:
    """The command of this name, else all, with their options, as Typer reads them from their
    functions: to read all takes longer than many a command."""
    root = typer.main.get_command(_only(name))
    _wrap_help(root)
    return root


def _only(name: str) -> typer.Typer:
    """The application with nothing but the command or group of this name, or whole without one."""
    commands = [each for each in app.registered_commands if _name(each) == name]
    groups = [
        each
        for each in app.registered_groups
        if each.typer_instance and each.typer_instance.info.name == name
    ]
    if not commands and not groups:
        return app
    part = copy(app)
    part.registered_commands, part.registered_groups = commands, groups
    return part


def _name(command: CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))


def main() -> NoReturn:
    """Run the command of this process's arguments. An error is one line on stderr, not a box."""
    try:
        status = command(*sys.argv[1:2])(prog_name="cacp", standalone_mode=False)
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
