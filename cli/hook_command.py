"""`cacp hook` as a command with options: adds the hooks to an agent's settings, and takes them out.

`cli.hook` runs a hook. `cli.entry` calls that directly when there are no options: it starts much
faster.
"""

from pathlib import Path
from typing import Annotated

import typer

from cli.client import DEFAULT_URL
from cli.options import KeyOption, UrlOption
from cli.terminal import REFUSED, USAGE, fail


def hook(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="claude, codex, gemini or opencode.")
    ],
    event: Annotated[
        str | None,
        typer.Argument(
            metavar="EVENT",
            help="The event of the hook, such as Stop; by default the one in the JSON on standard "
            "input.",
        ),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Add the hooks to the agent's settings.")
    ] = False,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Take the hooks out of the agent's settings.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say whether the hooks work, and if not, why.")
    ] = False,
    user: Annotated[bool, typer.Option("--user", help="All your projects, not only this one.")] = (
        False
    ),
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The settings file, if it is another.")
    ] = None,
    only_print: Annotated[
        bool,
        typer.Option("--print", help="Print what the settings would be, and change nothing."),
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="A file with the key to call with. With --install: the hooks use it in place of "
            "CACP_KEY.",
        ),
    ] = None,
) -> None:
    """Show an agent what waits for it, as lifecycle hooks of Claude Code, Codex, Gemini CLI and
    opencode.

    Shows once in a session what needs the agent (`cacp next`) and its mail, when the session
    starts, a person has written, or a tool has run; the rest as a count. When the agent stops,
    what is urgent keeps it working, once for each. Prints nothing when nothing waits, and when no
    node answers in time: --check says why.

    \b
    Examples:
      cacp hook claude --install
      cacp hook gemini --install --user --print
      cacp hook claude --check
      cacp hook claude --uninstall
      echo '{"session_id": "s1"}' | cacp hook claude SessionStart
    """
    from cli.hook import EVENTS, key_of, run

    if agent not in EVENTS:
        fail(USAGE, f"{agent} is unknown: name {', '.join(EVENTS)}")
    if install + uninstall + check > 1:
        fail(USAGE, "--install, --uninstall and --check exclude each other")
    given_url = None if url == DEFAULT_URL else url
    if install or uninstall:
        _change(agent, file, user, only_print, remove=uninstall, url=given_url, key_file=key_file)
    elif check:
        _check(agent, file)
    else:
        raise typer.Exit(run(agent, event, url, key_of(str(key_file) if key_file else None, key)))


def _check(agent: str, file: Path | None) -> None:
    from cli import views
    from cli.doctor_check import as_text
    from cli.hook_check import hook_checks

    broken = False
    for finding in hook_checks(agent, file):
        broken |= finding.state == "broken"
        views.console().print(as_text(finding), soft_wrap=True)
    if broken:
        raise typer.Exit(REFUSED)


def _change(
    agent: str,
    file: Path | None,
    user: bool,
    only_print: bool,
    *,
    remove: bool,
    url: str | None,
    key_file: Path | None,
) -> None:
    from cli import hook_install
    from cli.file_edit import apply

    file = file or hook_install.file_of(agent, user=user)
    try:
        if remove:
            changes = hook_install.uninstall(agent, file=file)
        else:
            changes = hook_install.install(agent, file=file, url=url, key_file=key_file)
        if only_print:
            for change in changes:
                typer.echo(change.after or "", nl=False)
            return
        apply(changes)
    except ValueError as error:
        fail(REFUSED, f"{file} is not changed: {error}")
    except OSError as error:
        fail(REFUSED, f"{file} can't be changed: {error.strerror}")
    if not changes:
        there = "has no hooks of ours" if remove else "has the hooks already"
        typer.echo(f"{file} {there}.", err=True)
    elif remove:
        typer.echo(f"Took the hooks out of {file}.", err=True)
    else:
        typer.echo(f"Added the hooks to {file}. Try them: cacp hook {agent} --check", err=True)
