"""What `cacp comply run` tests: the suites that fit the subject, and how the subject is reached."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.comply_options import LimitOptions, NodeOptions, SubjectOptions
from cli.terminal import USAGE, fail
from cli.text_files import read_text

if TYPE_CHECKING:
    from comply.settings import AgentServer
    from comply.target import Target


def suites_for(subject: SubjectOptions) -> list[str]:
    """The suites that are run when none is named. Ends the command unless the subject is one of
    agents, a node and a command."""
    if sum(map(bool, (subject.url, subject.agents, subject.command))) != 1:
        fail(USAGE, "name what to test: --url URL, --agent NAME or --command COMMAND")
    if subject.agents:
        return ["acp", "acp-v2"]
    return ["wire"] if subject.command else ["cacp-2.0", "json-rpc-2.0"]


def targets_of(
    subject: SubjectOptions, node: NodeOptions, limits: LimitOptions
) -> "Callable[[], Sequence[Target]]":
    """A function that makes the targets. What is wrong with the options ends the command now."""
    if subject.url is not None:
        url = subject.url
        return lambda: [_node_target(url, node)]
    if subject.command is not None:
        command = _checked_command(subject.command)
        return lambda: [_command_target(command)]
    servers = {name: agent_server(subject.settings, name) for name in subject.agents or []}
    return lambda: _agent_targets(servers, limits.start_timeout)


def agent_server(settings: Path, name: str) -> "AgentServer":
    """How the settings say that an agent is started."""
    from comply import settings as agent_settings

    try:
        return agent_settings.agent_server(read_text(settings), name, settings.parent)
    except agent_settings.BadSettings as error:
        fail(USAGE, f"{settings}: {error}")


def _checked_command(command: str) -> str:
    """The command, if a shell could split it into words."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        fail(USAGE, f"--command: quotes don't match, or it is empty: {command!r}")
    return command


def _node_target(url: str, node: NodeOptions) -> "Target":
    from comply.http import HttpTarget

    return HttpTarget(
        url,
        keys={
            "first": node.key,
            "second": node.key2,
            "third": node.key3,
            "human": node.human_key,
            "sync": node.sync_key,
        },
        peer_url=node.peer_url,
        peer_key=node.peer_key,
        repo=node.repo,
        repo2=node.repo2,
        endpoint=node.endpoint,
        endpoint2=node.endpoint2,
    )


def _command_target(command: str) -> "Target":
    from comply.command import CommandTarget

    return CommandTarget(command)


def _agent_targets(servers: "dict[str, AgentServer]", start_seconds: float) -> "Sequence[Target]":
    from comply.agent import StdioTarget

    return [
        StdioTarget(name, server, start_seconds=start_seconds) for name, server in servers.items()
    ]
