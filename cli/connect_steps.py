"""The steps of `cacp connect` and `cacp disconnect`: find out, show, ask, change, check."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from cli import connect_key, connect_plan
from cli.connect_agents import AGENTS, INSTRUCTIONS
from cli.connect_check import ask_agent
from cli.connect_options import NAMES, ChangeOptions, TargetOptions
from cli.connect_record import AgentConnection, FileRecord, named, of_checkout
from cli.connect_view import ConnectView
from cli.file_edit import FileEdit, apply
from cli.git_folder import repository_name, top_level
from cli.hook_install import needs_activation, program
from cli.keys import print_side_effects
from cli.node_url import location, node_url
from cli.offline import checked_agent, checked_name
from cli.terminal import REFUSED, USAGE, fail

if TYPE_CHECKING:
    from server.domain.location import Location

NEW_FILE = 0o666


class KeyChange(NamedTuple):
    """What happens to a connection's key: `given` is one of a person; else one is made."""

    needed: bool
    given: str | None = None


def run_connect(agent: str, target: TargetOptions, change: ChangeOptions) -> None:
    """Connect the agent in the current folder's repository. Ends the command with its status."""
    top = checkout_of(agent)
    with problems():
        connection = _wanted(agent, target, top)
        node = connect_key.node_agent(connection.url)
        if not connection.agent_id:
            default = connect_key.default_agent_id(node, connection.repo)
            connection.agent_id = target.agent_id or default
        key = _key_change(connection, target)
        called = program()
        plan = connect_plan.connecting(connection, called, top)
        view = ConnectView("connect", connection, top, plan.changes, change)
        if called != "cacp":
            view.note(
                f"The files name {called}, because `cacp` is not on the PATH: before you commit "
                "them, put it there and run this again."
            )
        elif needs_activation():
            view.note(
                "The files name `cacp`, which is on the PATH only while this virtual environment "
                "is active: start the agent in a shell where it is, or link "
                f"{Path(sys.prefix, 'bin', 'cacp')} into a folder of the PATH."
            )
        view.show_key("make" if key.needed and not key.given else "copy" if key.needed else "keep")
        is_known = str(top) in connection.checkouts
        connection.checkouts[str(top)] = plan.files
        if view.goes_on(key.needed or bool(plan.changes)):
            _make(connection, key, plan.changes)
            view.made = True
        elif not is_known and not change.dry_run:
            # Its files are committed, and another checkout has made the key.
            connection.save()
    if not change.dry_run:
        view.check = ask_agent(AGENTS[agent], top)
    view.end()


def run_disconnect(agent: str, change: ChangeOptions) -> None:
    """Take the connection back. Ends the command with its status."""
    top = checkout_of(agent)
    with problems():
        there = list(of_checkout(top))
        connection = next((other for other in there if other.agent == agent), None)
        if connection is None:
            ConnectView.nothing(agent, top, change)
            return
        others = [other for other in there if other is not connection]
        plan = connect_plan.disconnecting(connection, top, others=bool(others))
        view = ConnectView("disconnect", connection, top, plan.changes, change)
        remaining = {
            checkout: files
            for checkout, files in connection.checkouts.items()
            if checkout != str(top) and Path(checkout).is_dir()
        }
        view.show_key("share" if remaining else "revoke" if connection.key_id else "remove")
        if view.goes_on(True):
            connection.checkouts = remaining
            _take_back(connection, plan.changes, plan.files, others, top, view)
            view.made = True
    view.end()


def checkout_of(agent: str) -> Path:
    """The top level of the repository in which the command runs. Ends the command for an unknown
    agent, and outside of a repository."""
    if agent not in AGENTS:
        fail(USAGE, f"{agent} is not an agent that can be connected: name {NAMES}")
    top = top_level(Path.cwd())
    if top is None:
        fail(
            REFUSED,
            f"{Path.cwd()} is not in a git repository: run this in the repository that the agent "
            "works in (`git init` makes one)",
        )
    return top


@contextmanager
def problems() -> Iterator[None]:
    """What can't be read or changed ends the command with one line."""
    try:
        yield
    except ValueError as error:
        fail(REFUSED, str(error))
    except BrokenPipeError:
        fail(REFUSED, "the output was closed before its end: run it again, to a terminal or a file")
    except OSError as error:
        fail(REFUSED, f"{error.filename or 'a file'} can't be changed: {error.strerror}")


def _wanted(agent: str, target: TargetOptions, top: Path) -> AgentConnection:
    """The connection to make, or the one that is there. Raises ValueError when the options want
    another one than that."""
    there = next((other for other in of_checkout(top) if other.agent == agent), None)
    repo = target.repo or (there.repo if there else repository_name(top))
    try:
        checked_name(repo)
    except typer.BadParameter as error:
        fail(USAGE, f"--repo: {repo!r} {error.message}; name the repo with --repo")
    try:
        checked_agent(target.agent_id or "-")
    except typer.BadParameter as error:
        fail(USAGE, f"--agent-id: {target.agent_id!r} {error.message}")
    known = there or named(agent, repo)
    place = location(target.db, os.environ)
    db = str(place.resolve()) if isinstance(place, Path) else place.shown
    if known is None:
        url = (target.url or _node_of(place)).rstrip("/")
        return AgentConnection(agent, repo, target.agent_id or "", url, None, db)
    for option, value, present in (
        ("repo", repo, known.repo),
        ("agent id", target.agent_id or known.agent_id, known.agent_id),
        ("node", (target.url or known.url).rstrip("/"), known.url),
    ):
        if value != present:
            where = "here" if there else f"in {', '.join(known.checkouts)}"
            raise ValueError(
                f"{agent} is connected {where} with the {option} {present}, not {value}: run "
                f"`cacp disconnect {agent}` there first"
            )
    if target.db is not None or known.db is None:
        known.db = db
    return known


def _node_of(place: "Location") -> str:
    """The URL of the node of a file, or of the one that other commands would call."""
    named = {"CACP_DB": str(place)} if isinstance(place, Path) else {}
    try:
        return node_url(os.environ | named).url
    except ValueError as error:
        fail(USAGE, str(error))


def _key_change(connection: AgentConnection, target: TargetOptions) -> KeyChange:
    """Whether the connection needs a new key. Ends the command when none can be had."""
    present = connect_key.usable_key(connection)
    if target.key_file is not None:
        given = connect_key.given_key(connection, target.key_file)
        return KeyChange(given != present, given)
    if present is None:
        connect_key.check_database(connection)
    return KeyChange(present is None)


def _make(connection: AgentConnection, key: KeyChange, changes: list[FileEdit]) -> None:
    """Make the key and the changes. Raises OSError and ValueError; then all is as it was before."""
    is_new = not connection.file.exists()
    earlier = replace(connection)
    done: list[FileEdit] = []
    try:
        if key.needed:
            _put_key(connection, key)
        connection.save()
        for change in changes:
            apply([change], NEW_FILE)
            done.append(change)
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            apply([FileEdit(path, after, before) for path, before, after in reversed(done)])
        if is_new:
            connect_key.revoke(connection)
            with suppress(OSError):
                connection.forget()
        raise
    if key.needed and earlier.key_id is not None:
        connect_key.revoke(earlier)


def _put_key(connection: AgentConnection, key: KeyChange) -> None:
    """Make the key, or take the given one, and keep it. Raises OSError."""
    if key.given is not None:
        connection.key_id = connection.db = None
        connect_key.keep(connection, key.given)
    else:
        made = connect_key.new_key(connection)
        print_side_effects(connection.agent_id, made)
        connect_key.keep(connection, made.key)


def _take_back(
    connection: AgentConnection,
    changes: list[FileEdit],
    shared: dict[str, FileRecord],
    others: list[AgentConnection],
    top: Path,
    view: ConnectView,
) -> None:
    """Make the changes; who is still connected keeps what is shared. Raises OSError, ValueError."""
    if not connection.checkouts:
        view.note(connect_key.revoke(connection))
    apply(changes, NEW_FILE)
    if shared:
        heir = others[0]
        heir.checkouts[str(top)] = shared | heir.checkouts[str(top)]
        heir.save()
        view.note(f"{INSTRUCTIONS} keeps its block, because {heir.agent} is still connected.")
    if connection.checkouts:
        connection.save()
    else:
        connection.forget()
