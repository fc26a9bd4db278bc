"""`cacp comply`: prove that an agent, or a node, keeps to its protocol.

The commands import the runner themselves: `cacp --help` needn't wait for it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import comply_run as steps
from cli.comply_model import model
from cli.terminal import REFUSED, UNREACHABLE, USAGE, JsonOption, fail, print_json
from schemas.plain import clean, one_line

if TYPE_CHECKING:
    from comply.files import Case

app = typer.Typer(
    name="comply",
    no_args_is_help=True,
    help="Prove that an agent, or a node, keeps to its protocol.\n\n"
    "Example: cacp comply run cacp-2.0 --url http://127.0.0.1:8080",
)

Names = Annotated[list[str], typer.Argument(help="Suites, test ids, files or folders.")]


@app.command()
def lint(
    names: Names,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check test files: JSON, fields, regexes, variables; each problem with its line.

    Exit status: 0 fine, 1 problems, 2 wrong usage.

    Example: cacp comply lint my-tests/
    """
    from comply.files import NotFound, find
    from comply.source import Problem, lint

    def problems(path: Path) -> list[Problem]:
        try:
            return lint(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            return [Problem(1, f"can't be read: {getattr(error, 'strerror', 'it is not UTF-8')}")]

    try:
        paths = find(names)
    except NotFound as error:
        fail(USAGE, str(error))
    found = [(path, one) for path in paths for one in problems(path)]
    if as_json:
        print_json(
            [
                {"file": str(path), "line": one.line, "level": one.level, "problem": one.text}
                for path, one in found
            ]
        )
    else:
        for path, one in found:
            typer.echo(f"{path}:{one.line}: {one.level}: {one_line(one.text)}")
        typer.echo(f"{len(paths)} files, {len(found)} problems", err=True)
    if any(strict or one.level == "error" for _, one in found):
        raise typer.Exit(REFUSED)


@app.command("list")
def list_(
    names: Annotated[list[str] | None, typer.Argument(help="Suites, ids, files, folders.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the tests of the suites: id, severity, transport and title.

    Example: cacp comply list cacp-2.0
    """
    cases = _load(names)
    if as_json:
        print_json([_described(case) for case in cases])
        return
    for case in cases:
        test = case.test
        title = one_line(test.title)
        typer.echo(f"{case.suite}/{case.id}  {test.severity}  {test.transport}  {title}")


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="A test's id or file.")],
    as_json: JsonOption = False,
) -> None:
    """Say what a test verifies, where the rule stands, and what it sends and expects.

    Example: cacp comply explain contract.agree
    """
    from comply.explain import explain

    for case in _load([name]):
        if as_json:
            whole = case.test.model_dump(mode="json", by_alias=True, exclude_unset=True)
            print_json({**_described(case), **whole})
        else:
            typer.echo(clean(explain(case)))


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Suites, ids, files, folders.")] = None,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="An agent of the settings; repeatable.")
    ] = None,
    settings: Annotated[
        Path,
        typer.Option("--settings", help="File with agent_servers, or agent.json of the registry."),
    ] = Path("agents.json"),
    url: Annotated[str | None, typer.Option("--url", help="A node, for tests over HTTP.")] = None,
    command: Annotated[
        str | None, typer.Option("--command", help="A wire parser that reads standard input.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", envvar="CACP_KEY", help="Key of the first agent; --repo says whose."),
    ] = None,
    key2: Annotated[
        str | None,
        typer.Option(
            "--key2", envvar="CACP_KEY2", help="Key of another agent; --repo2 says whose."
        ),
    ] = None,
    key3: Annotated[
        str | None,
        typer.Option(
            "--key3", envvar="CACP_KEY3", help="Key of an agent whose limits may be used up."
        ),
    ] = None,
    human_key: Annotated[
        str | None, typer.Option("--human-key", envvar="CACP_HUMAN_KEY", help="Key of a human.")
    ] = None,
    sync_key: Annotated[
        str | None,
        typer.Option(
            "--sync-key", envvar="CACP_SYNC_KEY", help="Key of --key2's agent as a peer, for sync."
        ),
    ] = None,
    peer_url: Annotated[
        str | None, typer.Option("--peer-url", help="A second node, a peer of the first.")
    ] = None,
    peer_key: Annotated[
        str | None, typer.Option("--peer-key", envvar="CACP_PEER_KEY", help="Key at the peer.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", help="Repo of the first agent; the card's if absent.")
    ] = None,
    repo2: Annotated[str, typer.Option("--repo2", help="Repo of the other.")] = "frontend-app",
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            help="URL that the first agent gives as its own; one that leads nowhere if absent.",
        ),
    ] = None,
    endpoint2: Annotated[
        str | None, typer.Option("--endpoint2", help="The same of the other agent.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Tests at a time.")] = 4,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", min=0.1, help="Seconds that one test may take beside its windows."
        ),
    ] = 60,
    start_timeout: Annotated[
        float,
        typer.Option(
            "--start-timeout", min=0.1, help="Seconds that an agent may take to answer at first."
        ),
    ] = 30,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="What is known not to pass; a stale entry fails."),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", help="Write what fails, or isn't tested, as known."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the report as JSON, with transcripts.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the report as JUnit XML.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the report as one HTML page.")
    ] = None,
    badge: Annotated[Path | None, typer.Option("--badge", help="Write a badge (SVG).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Run tests against agents, a node or a wire parser; print the report as Markdown.

    Without names: acp and acp-v2 for agents that speak these versions, cacp-2.0 and json-rpc-2.0
    for a node, wire for a command. Tests that need what is missing (a login, another key, a second
    node) are NA: not tested.

    Reports are written as the run goes on, and hold what is finished whatever ends it.

    Exit status: 0 all required tests pass, 1 one fails or a baseline entry is stale, 2 wrong
    usage, 3 the harness failed, or a subject can't be reached or started, 4 none fails, but some
    required tests were not tested, 128 + the signal that ended the run.

    \b
    Examples:
      cacp comply run cacp-2.0 --url http://127.0.0.1:8080 --key2 "$FRONTEND_KEY"
      cacp comply run json-rpc-2.0 --url http://127.0.0.1:8080 --junit report.xml
      cacp comply run acp-messages --url http://127.0.0.1:8080 --key2 "$FRONTEND_KEY"
      cacp comply run acp --agent echo --settings agents.json
      cacp comply run wire --command "cacp wire parse - --json"
    """
    from comply import baseline as known_failures
    from comply.files import around
    from comply.outcome import judge
    from comply.plan import Run
    from comply.run import Target

    if sum(map(bool, (url, agent, command))) != 1:
        fail(USAGE, "name what to test: --url URL, --agent NAME or --command COMMAND")
    line = None if command is None else steps.command_line(command)
    usual = ["acp", "acp-v2"] if agent else ["wire"] if command else ["cacp-2.0", "json-rpc-2.0"]
    cases = _cases(names or usual)
    servers = {name: steps.agent_server(settings, name) for name in agent or []}

    def targets() -> list[Target]:
        from comply.agent import StdioTarget
        from comply.command import CommandTarget
        from comply.http import HttpTarget

        if url is not None:
            keys = {"first": key, "second": key2, "third": key3, "human": human_key}
            keys["sync"] = sync_key
            return [
                HttpTarget(
                    url,
                    keys,
                    peer_url,
                    peer_key,
                    repo,
                    repo2,
                    endpoint=endpoint,
                    endpoint2=endpoint2,
                )
            ]
        if line is not None:
            return [CommandTarget(line)]
        return [
            StdioTarget(name, one, start_seconds=start_timeout) for name, one in servers.items()
        ]

    known = known_failures.entries(steps.read(baseline)) if baseline else frozenset()
    reports = steps.Reports(known, json_file, junit, html, badge)
    reports.check()
    progress = steps.Progress(reports, quiet)
    progress.run = whole = Run(
        cases, targets, jobs=jobs, seconds=timeout, done=progress, unasked=not names
    )
    steps.go(whole, reports)
    if write_baseline is not None:
        steps.note_known(write_baseline, whole.subjects)
    outcome = judge(whole.subjects, known, around(cases), whole.ended_by)
    steps.conclude(outcome, baseline)


def _cases(names: list[str]) -> "list[Case]":
    """The cases of these names. A file that is no test is an error of that test alone."""
    from comply.files import NotFound, find, load_all

    try:
        return load_all(find(names))
    except NotFound as error:
        fail(USAGE, str(error))


def _load(names: list[str] | None) -> "list[Case]":
    """The cases of these names, or of every suite."""
    from comply.files import BadTest, NotFound, find, load, suites

    try:
        return [load(path) for path in find(names or suites())]
    except (NotFound, BadTest) as error:
        fail(USAGE, str(error))


def _described(case: "Case") -> dict[str, object]:
    test = case.test
    return {
        "test": f"{case.suite}/{case.id}",
        "title": test.title,
        "description": test.description,
        "severity": test.severity,
        "transport": test.transport,
        "docs": test.docs,
    }


@app.command()
def record(
    file: Annotated[Path, typer.Argument(help="The test to write.")],
    agent: Annotated[str, typer.Option("--agent", help="An agent of the settings.")],
    settings: Annotated[
        Path,
        typer.Option("--settings", help="File with agent_servers, or agent.json of the registry."),
    ] = Path("agents.json"),
) -> None:
    """Stand between an editor and an agent, and write what they say as a test to edit.

    Give the editor this command in place of the agent's own.

    Example: cacp comply record hello.jsont --agent echo --settings agents.json
    """
    import asyncio
    import sys

    from comply.recording import relay, to_test
    from comply.run import Unreachable

    server = steps.agent_server(settings, agent)
    steps.write(file, "")
    try:
        said = asyncio.run(relay(server, sys.stdin.buffer, sys.stdout.buffer))
    except Unreachable as error:
        fail(UNREACHABLE, str(error))
    steps.write(file, to_test(said, file.stem))


app.command()(model)
