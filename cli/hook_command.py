"""`cacp hook` as a command with options: runs a hook, or adds the hooks to an agent's settings.

`cli.hook` runs the hook. `cli.entry` calls that directly when there are no options: it starts much
faster.
"""

from pathlib import Path
from typing import Annotated

import typer

from cli.client import DEFAULT_URL, NodeClient, NodeError
from cli.options import KeyOption, UrlOption
from cli.terminal import REFUSED, USAGE, fail


def hook(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="claude or codex.")],
    event: Annotated[
        str | None,
        typer.Argument(
            metavar="EVENT",
            help="SessionStart, UserPromptSubmit, PostToolUse or Stop; by default the event in "
            "the JSON on standard input.",
        ),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Add the hooks to the agent's settings.")
    ] = False,
    user: Annotated[
        bool,
        typer.Option("--user", help="With --install: for all your projects, not only this one."),
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --install: the settings file to change."),
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="With --install: print the settings and change nothing.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
) -> None:
    """Show new mail to Claude Code or Codex, as one of its lifecycle hooks.

    Reads the hook's JSON on standard input, and prints new mail in the form that the agent reads.
    A message is shown once, and again if it is not acknowledged before its lease ends. At Stop,
    urgent mail keeps the agent working. Prints nothing when there is no mail, or no node answers.
    The node needs CACP_ACP_SESSION_INJECTION=true; CACP_KEY is the agent's key.

    \b
    Examples:
      cacp hook claude --install
      cacp hook codex --install --user --print
      echo '{"session_id": "s1"}' | cacp hook claude SessionStart
    """
    if not install:
        from cli.hook import run

        raise typer.Exit(run(agent, event, url, key))
    _install(agent, file, user, only_print, None if url == DEFAULT_URL else url)
    _warn_of_missing_setup(url, key)


def _install(agent: str, file: Path | None, user: bool, only_print: bool, url: str | None) -> None:
    from cli import hook_install

    if agent not in hook_install.FILES:
        fail(USAGE, f"{agent} is unknown: name claude or codex")
    file = file or hook_install.file_of(agent, user=user)
    try:
        if only_print:
            merged = hook_install.merged(hook_install.read(file), agent, url)
            typer.echo(hook_install.shown(merged), nl=False)
            return
        changed, backup = hook_install.install(file, agent, url)
    except ValueError as error:
        fail(REFUSED, f"{file} is not changed: {error}")
    except OSError as error:
        fail(REFUSED, f"{file} can't be changed: {error.strerror}")
    if not changed:
        typer.echo(f"{file} has the hooks already.", err=True)
        return
    kept = f"; the old one is {backup}" if backup else ""
    typer.echo(f"Added the hooks to {file}{kept}.", err=True)


def _warn_of_missing_setup(url: str, key: str | None) -> None:
    """Say what the node still needs for the hooks to work."""
    try:
        with NodeClient(url, key) as node:
            state = node.get("/health")["mail"]["session"]
    except (NodeError, ValueError, KeyError):
        typer.echo("The node doesn't answer yet; until it does, the hooks print nothing.", err=True)
        return
    if state != "available":
        typer.echo(
            "The node doesn't show mail in sessions: set CACP_ACP_SESSION_INJECTION=true there.",
            err=True,
        )
