"""`cacp comply`: prove that an agent, or a node, keeps to its protocol.

The commands import the runner themselves: `cacp --help` needn't wait for it.
"""

import itertools
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal import REFUSED, UNREACHABLE, USAGE, JsonOption, fail, print_json
from schemas.plain import clean, one_line

if TYPE_CHECKING:
    from comply.files import Case
    from comply.result import Result, Subject
    from comply.settings import AgentServer

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
    from comply.source import lint

    try:
        paths = find(names)
        found = [(path, one) for path in paths for one in lint(path.read_text(encoding="utf-8"))]
    except NotFound as error:
        fail(USAGE, str(error))
    except (OSError, UnicodeDecodeError) as error:
        fail(USAGE, f"a file can't be read: {getattr(error, 'strerror', 'it is not UTF-8')}")
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
            print_json(_described(case))
        else:
            typer.echo(clean(explain(case)))


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Suites, ids, files, folders.")] = None,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="An agent of the settings; repeatable.")
    ] = None,
    settings: Annotated[
        Path, typer.Option("--settings", help="File with agent_servers, as editors have it.")
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
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Tests at a time.")] = 4,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds that one test may take.")
    ] = 60,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Known failures; a stale entry fails.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", help="Write what fails now as known.")
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

    Without names: acp for agents, cacp-2.0 and json-rpc-2.0 for a node, wire for a command. Tests
    that need what is missing (another key, a second node) are NA and fail nothing.

    Exit status: 0 all required tests pass, 1 one fails or a baseline entry is stale, 2 wrong
    usage, 3 the harness failed or nothing answers.

    \b
    Examples:
      cacp comply run cacp-2.0 --url http://127.0.0.1:8080 --key2 "$FRONTEND_KEY"
      cacp comply run json-rpc-2.0 --url http://127.0.0.1:8080 --junit report.xml
      cacp comply run acp-messages --url http://127.0.0.1:8080 --key2 "$FRONTEND_KEY"
      cacp comply run acp --agent echo --settings agents.json
      cacp comply run wire --command "cacp wire parse - --json"
    """
    from comply import baseline as known_failures
    from comply import plan
    from comply.files import around
    from comply.result import Subject
    from comply.run import Target, Unreachable

    if sum(map(bool, (url, agent, command))) != 1:
        fail(USAGE, "name what to test: --url URL, --agent NAME or --command COMMAND")
    if command is not None and not _splits(command):
        fail(USAGE, f"--command: quotes don't match, or it is empty: {command!r}")
    usual = ["acp"] if agent else ["wire"] if command else ["cacp-2.0", "json-rpc-2.0"]
    cases = _load(names or usual)
    servers = [(name, _agent_server(settings, name)) for name in agent or []]

    def targets() -> list[Target]:
        from comply.http import HttpTarget

        if url is not None:
            keys = {"first": key, "second": key2, "third": key3, "human": human_key}
            return [HttpTarget(url, keys, peer_url, peer_key, repo, repo2)]
        if command is not None:
            from comply.command import CommandTarget

            return [CommandTarget(command)]
        from comply.stdio import StdioTarget

        return [StdioTarget(name, server) for name, server in servers]

    known = known_failures.entries(_read(baseline)) if baseline else frozenset()
    count, total = itertools.count(1), len(cases) * (len(servers) or 1)

    def done(_: object, result: "Result") -> None:
        if not quiet:
            why = f"  {one_line(result.reason, 100)}" if result.reason else ""
            typer.echo(f"{next(count)}/{total} {result.verdict} {result.key}{why}", err=True)

    try:
        subjects: list[Subject] = plan.run(
            cases,
            targets,
            jobs=jobs,
            seconds=timeout,
            done=done,
        )
    except Unreachable as error:
        fail(UNREACHABLE, str(error))
    outcome = plan.judge(subjects, known, around(cases))
    _report(subjects, known, json_file=json_file, junit=junit, html=html, badge=badge)
    if write_baseline is not None:
        _write(write_baseline, known_failures.as_text(subjects))
    for entry, why in outcome.stale.items():
        typer.echo(f"cacp: {one_line(entry)} {why}: take it out of {baseline}", err=True)
    for error_text in outcome.errors:
        typer.echo(f"cacp: {one_line(error_text)}", err=True)
    raise typer.Exit(outcome.status)


def _splits(command: str) -> bool:
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False


def _agent_server(settings: Path, name: str) -> "AgentServer":
    from comply.settings import BadSettings, agent_server

    try:
        return agent_server(_read(settings), name)
    except BadSettings as error:
        fail(USAGE, f"{settings}: {error}")


def _report(
    subjects: "list[Subject]",
    known: frozenset[str],
    *,
    json_file: Path | None,
    junit: Path | None,
    html: Path | None,
    badge: Path | None,
) -> None:
    from comply.report import badge as badges
    from comply.report import data, markdown, page
    from comply.report import junit as xml

    typer.echo(clean(markdown.markdown(subjects)), nl=False)
    for path, text in (
        (json_file, data.as_json(subjects)),
        (junit, xml.junit(subjects, known)),
        (html, page.page(subjects)),
        (badge, badges.badge(subjects)),
    ):
        if path is not None:
            _write(path, text)


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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(USAGE, f"can't read {path}: {getattr(error, 'strerror', 'it is not UTF-8')}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(USAGE, f"can't write {path}: {error.strerror}")


@app.command()
def record(
    file: Annotated[Path, typer.Argument(help="The test to write.")],
    agent: Annotated[str, typer.Option("--agent", help="An agent of the settings.")],
    settings: Annotated[
        Path, typer.Option("--settings", help="File with agent_servers, as editors have it.")
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

    server = _agent_server(settings, agent)
    _write(file, "")
    try:
        said = asyncio.run(relay(server, sys.stdin.buffer, sys.stdout.buffer))
    except Unreachable as error:
        fail(UNREACHABLE, str(error))
    _write(file, to_test(said, file.stem))
