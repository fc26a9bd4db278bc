"""The options of `cacp comply run`, grouped by purpose."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Suites, test ids, files or folders."),
]
SettingsOption = Annotated[
    Path,
    typer.Option("--settings", help="File with agent_servers, or agent.json of the registry."),
]


@dataclass(frozen=True)
class SubjectOptions:
    """What is tested: agents, a node or a command."""

    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="Test this agent of --settings; repeatable."),
    ] = None
    settings: SettingsOption = Path("agents.json")
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Test the node at this URL.")
    ] = None
    command: Annotated[
        str | None,
        typer.Option("--command", help="Test a wire parser that reads standard input."),
    ] = None


@dataclass(frozen=True)
class NodeOptions:
    """How a node is called: the keys, repos and endpoints of its agents, and its peer."""

    key: Annotated[
        str | None,
        typer.Option(
            "--key", envvar="CACP_KEY", help="Key of the first agent, which has the repo --repo."
        ),
    ] = None
    key2: Annotated[
        str | None,
        typer.Option(
            "--key2", envvar="CACP_KEY2", help="Key of another agent, which has the repo --repo2."
        ),
    ] = None
    key3: Annotated[
        str | None,
        typer.Option(
            "--key3",
            envvar="CACP_KEY3",
            help="Key of an agent whose rate limits the tests may exhaust.",
        ),
    ] = None
    human_key: Annotated[
        str | None, typer.Option("--human-key", envvar="CACP_HUMAN_KEY", help="Key of a human.")
    ] = None
    sync_key: Annotated[
        str | None,
        typer.Option(
            "--sync-key",
            envvar="CACP_SYNC_KEY",
            help="Key with trust peer for the agent of --key2, used by the tests of sync.",
        ),
    ] = None
    peer_url: Annotated[
        str | None,
        typer.Option("--peer-url", metavar="URL", help="A second node, a peer of the first."),
    ] = None
    peer_key: Annotated[
        str | None,
        typer.Option("--peer-key", envvar="CACP_PEER_KEY", help="Key to call the second node."),
    ] = None
    repo: Annotated[
        str | None,
        typer.Option(
            "--repo", help="Repo of the first agent. By default the one on the node's agent card."
        ),
    ] = None
    repo2: Annotated[str, typer.Option("--repo2", help="Repo of the other agent.")] = "frontend-app"
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            help="URL that the first agent registers as its own. By default one where nothing "
            "listens.",
        ),
    ] = None
    endpoint2: Annotated[
        str | None,
        typer.Option("--endpoint2", help="URL that the other agent registers as its own."),
    ] = None


@dataclass(frozen=True)
class LimitOptions:
    """How much runs at a time, and how long it may take."""

    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, max=64, help="How many tests run at a time.")
    ] = 4
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.1,
            help="Seconds that one test may take, excluding its deliberate waits.",
        ),
    ] = 60
    min_coverage: Annotated[
        int,
        typer.Option(
            "--min-coverage",
            metavar="PERCENT",
            min=0,
            max=100,
            help="How much of the tests must apply (not be NA) for exit status 0.",
        ),
    ] = 33
    start_timeout: Annotated[
        float,
        typer.Option(
            "--start-timeout", min=0.1, help="Seconds that an agent may take to start and answer."
        ),
    ] = 30


@dataclass(frozen=True)
class ReportOptions:
    """What is written: reports, the list of known failures, and progress."""

    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            help="File of known failures, which don't count. A stale entry fails the run.",
        ),
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline",
            help="Write failed and untested tests to this file of known failures.",
        ),
    ] = None
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the report as JSON, with transcripts.")
    ] = None
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the report as JUnit XML.")
    ] = None
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the report as one HTML page.")
    ] = None
    badge: Annotated[Path | None, typer.Option("--badge", help="Write a badge (SVG).")] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False
