"""What `cacp connect` and `cacp disconnect` print: each change, a question, and the end."""

import sys
from pathlib import Path
from typing import Any, Literal

import typer

from cli.connect_agents import AGENTS
from cli.connect_check import ServerListing
from cli.connect_options import ChangeOptions
from cli.connect_record import AgentConnection
from cli.diff_text import diff_lines
from cli.file_edit import FileEdit
from cli.terminal import REFUSED, print_json
from schemas.plain import clean, one_line

KeyStep = Literal["make", "copy", "keep", "revoke", "share", "remove"]

KEYS: dict[KeyStep, str] = {
    "make": "make a key in {db}, kept in {file}, which only you can read",
    "copy": "copy your key to {file}, which only you can read",
    "revoke": "revoke {id} in {db}, remove {file}",
    "share": "keep {id}: other checkouts use it",
    "remove": "remove {file}; your key is not revoked",
}


class ConnectView:
    """The view of one run. With --json it prints one object at the end."""

    def __init__(
        self,
        command: Literal["connect", "disconnect"],
        connection: AgentConnection,
        top: Path,
        changes: list[FileEdit],
        how: ChangeOptions,
    ) -> None:
        self.made = False
        self.check: ServerListing | None = None
        self._command = command
        self._connection = connection
        self._agent = AGENTS[connection.agent]
        self._top = top
        self._changes = changes
        self._how = how
        self._key: KeyStep = "keep"
        self._notes: list[str] = []

    @staticmethod
    def nothing(agent: str, top: Path, how: ChangeOptions) -> None:
        """Say that there is no connection to take back."""
        if how.as_json:
            print_json({"agent": agent, "checkout": str(top), "connected": False, "changes": []})
        else:
            typer.echo(f"{AGENTS[agent].title} is not connected in {top}: nothing to change.")

    def show_key(self, step: KeyStep) -> None:
        self._key = step

    def note(self, text: str) -> None:
        """A line for the end."""
        self._notes.append(text)

    def goes_on(self, needed: bool) -> bool:
        """Show what is to be done. Whether to do it: not when there is nothing, in a dry run, or
        when the person at the terminal says no, which ends the command."""
        if not self._how.as_json:
            self._show()
        if not needed:
            self._say("Nothing to change.")
            return False
        if self._how.dry_run:
            self._say("Nothing was changed (--dry-run).")
            return False
        if self._asks() and not typer.confirm("Make these changes?", default=True):
            typer.echo("Nothing was changed.", err=True)
            raise typer.Exit(REFUSED)
        return True

    def end(self) -> None:
        """Say what was done, and what the agent's own command says. Ends the command with status 1
        when the agent doesn't use the server."""
        if self._how.as_json:
            print_json(self._as_json())
        else:
            for note in self._notes:
                typer.echo(note)
            if self.made:
                typer.echo(f"{self._command.capitalize()}ed {self._agent.title}.")
            if self.check is not None:
                typer.echo(self._checked(self.check))
        if self.check is not None and self.check.state not in ("listed", "not installed"):
            raise typer.Exit(REFUSED)

    def _asks(self) -> bool:
        quiet = self._how.yes or self._how.as_json
        return not quiet and sys.stdin.isatty() and sys.stdout.isatty()

    def _show(self) -> None:
        connection = self._connection
        direction = "to" if self._command == "connect" else "from"
        what = f"{self._command.capitalize()} {self._agent.title} in {self._top}"
        typer.echo(f"{what} {direction} {connection.url}")
        typer.echo(f"as {one_line(connection.agent_id)}, repo {one_line(connection.repo)}")
        if self._key in KEYS:
            typer.echo(f"\n{self._key_line()}")
        for change in self._changes:
            typer.echo(f"\n{_action(change)} {self._path(change)}")
            for line in diff_lines(change.before, change.after):
                typer.echo(f"  {clean(line)}")
        typer.echo("")

    def _key_line(self) -> str:
        connection = self._connection
        line = KEYS[self._key].format(
            db=connection.db, file=connection.key_file, id=connection.key_id
        )
        if self._key in ("make", "copy") and connection.key_id is not None:
            line += f"; {connection.key_id}, which it replaces, is revoked"
        return line

    def _path(self, change: FileEdit) -> str:
        return change.path.relative_to(self._top).as_posix()

    def _say(self, text: str) -> None:
        if not self._how.as_json:
            typer.echo(text)

    def _checked(self, check: ServerListing) -> str:
        title, line = self._agent.title, one_line(check.line, 200)
        match check.state:
            case "listed":
                return f"`{check.command}`: {line}"
            case "not installed":
                return (
                    f"{title}'s command `{self._agent.program}` is not installed here, so it was "
                    "not asked whether it lists the server."
                )
            case "unusable":
                return (
                    f"But {title} doesn't use it yet: {self._agent.hint}.\n"
                    f"`{check.command}`: {line}"
                )
            case "missing":
                return f"But `{check.command}` doesn't list the server: {self._agent.hint}."
        return f"But `{check.command}` failed: {line}"

    def _as_json(self) -> dict[str, Any]:
        connection = self._connection
        value: dict[str, Any] = {
            "agent": connection.agent,
            "agentId": connection.agent_id,
            "repo": connection.repo,
            "url": connection.url,
            "checkout": str(self._top),
            "dryRun": self._how.dry_run,
            "key": {"step": self._key, "keyId": connection.key_id, "file": connection.key_file},
            "changes": [
                {
                    "path": self._path(change),
                    "action": _action(change),
                    "diff": list(diff_lines(change.before, change.after)),
                }
                for change in self._changes
            ],
            "made": self.made,
            "notes": self._notes,
        }
        if self._command == "connect":
            value["check"] = self.check and self.check._asdict()
        return value


def _action(change: FileEdit) -> str:
    return "make" if change.before is None else "remove" if change.after is None else "change"
