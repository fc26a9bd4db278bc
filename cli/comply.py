"""`cacp comply`: test whether an agent, or a node, follows its protocol.

The commands import the runner themselves: `cacp --help` doesn't wait for it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import comply_run
from cli.comply_model import model
from cli.comply_options import (
    LimitOptions,
    NamesArgument,
    NodeOptions,
    ReportOptions,
    SettingsOption,
    SubjectOptions,
)
from cli.comply_subject import agent_server, suites_for, targets_of
from cli.options import JsonOption, grouped
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail, print_json
from cli.text_files import read_text, reading_problem, write_text
from schemas.plain import clean, one_line

if TYPE_CHECKING:
    from comply.files import Case
    from comply.source import Problem

app = typer.Typer(
    name="comply",
    no_args_is_help=True,
    help="Test whether an agent, or a node, follows its protocol.\n\n"
    "Example: cacp comply run cacp-2.0 --url http://127.0.0.1:8080",
)


@app.command()
def lint(
    names: Annotated[
        list[str], typer.Argument(help="Suites, test ids, files or folders to check.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Fail for warnings too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check test files, and print each problem with its file and line.

    Checks that a file is JSON, that its fields are known, that its regexes compile and that its
    variables are set before they are used. Runs no test.

    Exit status: 0 no errors, 1 errors (with --strict: or warnings), 2 wrong usage.

    Example: cacp comply lint my-tests/
    """
    from comply.files import NoSuchTest, find

    try:
        paths = find(names)
    except NoSuchTest as error:
        fail(USAGE, str(error))
    problems = [(path, problem) for path in paths for problem in _problems_in(path)]
    if as_json:
        print_json([_problem_json(path, problem) for path, problem in problems])
    else:
        for path, problem in problems:
            typer.echo(f"{path}:{problem.line}: {problem.level}: {one_line(problem.text)}")
        typer.echo(f"{len(paths)} files, {len(problems)} problems", err=True)
    if any(strict or problem.level == "error" for _, problem in problems):
        raise typer.Exit(REFUSED)


@app.command("list")
def list_(names: NamesArgument = None, as_json: JsonOption = False) -> None:
    """List tests: id, severity, transport and title.

    Example: cacp comply list cacp-2.0
    """
    cases = _load(names)
    if as_json:
        print_json([_case_json(case) for case in cases])
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
    """Show what a test verifies, the clause it comes from, and what it sends and expects.

    Example: cacp comply explain contract.agree
    """
    from comply.explain import explain

    for case in _load([name]):
        if as_json:
            whole = case.test.model_dump(mode="json", by_alias=True, exclude_unset=True)
            print_json({**_case_json(case), **whole})
        else:
            typer.echo(clean(explain(case)))


@app.command()
@grouped
def run(
    subject: SubjectOptions,
    node: NodeOptions,
    limits: LimitOptions,
    report: ReportOptions,
    names: NamesArgument = None,
) -> None:
    """Run tests against agents, a node or a wire parser, and print a report as Markdown.

    Without names it runs the suites acp and acp-v2 for agents (the versions that they speak),
    cacp-2.0 and json-rpc-2.0 for a node, and wire for a command. A test that needs something you
    did not give (a login, another key, a second node) is NA: not tested.

    The report files are updated during the run: however it ends, they have the finished tests.
    At the end, also after Ctrl-C, what the tests have made at a node is removed: projects,
    subscriptions, teamspaces. What can't be removed, such as mail, is counted.

    Exit status: 0 all required tests pass, 1 a test fails or a baseline entry is stale, 2 wrong
    usage, 3 the runner failed, or a subject can't be reached or started, 4 none fails, but some
    required tests were not tested, 5 none fails, but less than --min-coverage percent of the tests
    applied, 128 + the signal that ended the run.

    \b
    Examples:
      cacp comply run cacp-2.0 --url http://127.0.0.1:8080 --key2 "$FRONTEND_KEY"
      cacp comply run json-rpc-2.0 --url http://127.0.0.1:8080 --junit report.xml
      cacp comply run acp-messages --url "$NODE_URL" --key2 "$FRONTEND_KEY"
      cacp comply run acp --agent echo --settings agents.json
      cacp comply run wire --command "cacp wire parse - --json"
    """
    from comply.baseline import entries
    from comply.files import around
    from comply.outcome import judge
    from comply.plan import ComplianceRun

    cases = _load_all(names or suites_for(subject))
    targets = targets_of(subject, node, limits)
    known = entries(read_text(report.baseline)) if report.baseline else frozenset()
    reports = comply_run.Reports(known, report.json, report.junit, report.html, report.badge)
    reports.check()
    progress = comply_run.Progress(reports, report.quiet)
    progress.run = tests = ComplianceRun(
        cases,
        targets,
        jobs=limits.jobs,
        seconds=limits.timeout,
        done=progress,
        unasked=not names,
    )
    comply_run.run_tests(tests, reports)
    if report.write_baseline is not None:
        comply_run.write_baseline(report.write_baseline, tests.subjects)
    comply_run.tell_cleanup(tests.subjects)
    outcome = judge(
        tests.subjects, known, around(cases), tests.ended_by, min_coverage=limits.min_coverage
    )
    comply_run.conclude(outcome, report.baseline)


@app.command()
def record(
    file: Annotated[Path, typer.Argument(help="The test file to write.")],
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent of --settings to start.")
    ],
    settings: SettingsOption = Path("agents.json"),
) -> None:
    """Record a conversation of an editor with an agent as a test, which you then edit.

    Configure the editor to start this command in place of the agent. It starts the agent, forwards
    messages both ways, and writes the test when the editor ends it.

    Example: cacp comply record hello.jsont --agent echo --settings agents.json
    """
    import asyncio
    import sys

    from comply.recording import relay, to_test
    from comply.target import SubjectUnreachable

    server = agent_server(settings, agent)
    write_text(file, "")
    try:
        frames = asyncio.run(relay(server, sys.stdin.buffer, sys.stdout.buffer))
    except SubjectUnreachable as error:
        fail(UNREACHABLE, str(error))
    write_text(file, to_test(frames, file.stem))


app.command()(model)


def _problems_in(path: Path) -> "list[Problem]":
    from comply.lint import lint
    from comply.source import Problem

    try:
        return lint(path.read_text(encoding="utf-8"), path.parent)
    except (OSError, UnicodeDecodeError) as error:
        return [Problem(1, f"can't be read: {reading_problem(error)}")]


def _problem_json(path: Path, problem: "Problem") -> dict[str, object]:
    return {
        "file": str(path),
        "line": problem.line,
        "level": problem.level,
        "problem": problem.text,
    }


def _load_all(names: list[str]) -> "list[Case]":
    """The cases of these names. A malformed file is an error of that test alone."""
    from comply.files import NoSuchTest, find, load_all

    try:
        return load_all(find(names))
    except NoSuchTest as error:
        fail(USAGE, str(error))


def _load(names: list[str] | None) -> "list[Case]":
    """The cases of these names, or of every suite. A malformed file ends the command."""
    from comply.files import BadTest, NoSuchTest, find, load, suites

    try:
        return [load(path) for path in find(names or suites())]
    except (NoSuchTest, BadTest) as error:
        fail(USAGE, str(error))


def _case_json(case: "Case") -> dict[str, object]:
    test = case.test
    return {
        "test": f"{case.suite}/{case.id}",
        "title": test.title,
        "description": test.description,
        "severity": test.severity,
        "transport": test.transport,
        "docs": test.docs,
    }
