"""`cacp thread`: run agent CLIs over a manifest. Heavy imports happen inside the commands."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from schemas.manifest import Budget
    from threader.load import Project
    from threader.run import Run

app = typer.Typer(
    name="thread",
    help="Run agent CLIs over a manifest: verified, healed, resumable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ManifestPath = Annotated[Path, typer.Argument(help="The manifest.", metavar="MANIFEST")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plain = Annotated[bool, typer.Option("--plain", help="Lines instead of the live view.")]
Compat = Annotated[
    str | None, typer.Option("--compat", help="Accept another result format too: wire.")
]

BudgetTokens = Annotated[
    int | None,
    typer.Option("--budget-tokens", min=1, help="Stop when so many tokens, in and out, are used."),
]
BudgetUsd = Annotated[
    float | None,
    typer.Option("--budget-usd", min=0.01, help="Stop when so many US dollars are spent."),
]

NOT_ALL_DONE = 1
MISTAKE = 2
INTERRUPTED = 130


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, default=str, indent=None if isinstance(value, list) else 2))


@contextmanager
def _mistakes(as_json: bool) -> Iterator[None]:
    """Turn what the user can mend into a message and exit code 2."""
    from threader.errors import ManifestProblems, ThreaderError

    try:
        yield
    except ThreaderError as error:
        problems = error.problems if isinstance(error, ManifestProblems) else [str(error)]
        if as_json:
            _print_json({"ok": False, "problems": problems})
        else:
            for problem in problems:
                typer.echo(f"cacp thread: {problem}", err=True)
        raise typer.Exit(MISTAKE) from None


def _load(manifest: Path) -> "Project":
    from threader.load import load_project

    return load_project(manifest)


def _budget(tokens: int | None, usd: float | None) -> "Budget | None":
    from schemas.manifest import Budget

    return None if tokens is None and usd is None else Budget(tokens=tokens, usd=usd)


@app.command()
def run(
    manifest: ManifestPath,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over; an old run is kept aside.")
    ] = False,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    plain: Plain = False,
    compat: Compat = None,
    as_json: AsJson = False,
) -> None:
    """Run a manifest to its end, or until its budget is used up.

    Exit status: 0 all tasks DONE, 1 not all, 2 a mistake to mend, 130 interrupted.

    Example: cacp thread run manifest.json
    """
    from threader.session import start_run

    with _mistakes(as_json):
        budget = _budget(budget_tokens, budget_usd)
        opened = start_run(_load(manifest), fresh=fresh, budget=budget)
        _go(opened, plain=plain, compat=compat, as_json=as_json)


class _Resume(TyperCommand):
    """Lets `--retry-failed` stand alone, which then means all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        whole = [
            f"{arg}=*"
            if arg == "--retry-failed" and (not following or following.startswith("-"))
            else arg
            for arg, following in zip(args, [*args[1:], ""], strict=True)
        ]
        return super().parse_args(ctx, whole)


@app.command(cls=_Resume)
def resume(
    manifest: ManifestPath,
    reconcile: Annotated[
        bool, typer.Option("--reconcile", help="Fit the run to the changed manifest.")
    ] = False,
    retry: Annotated[
        list[str] | None, typer.Option("--retry", help="Start this task afresh (repeatable).")
    ] = None,
    retry_failed: Annotated[
        str | None,
        typer.Option(
            "--retry-failed",
            metavar="[GLOB]",
            help="Start tasks afresh that ended FAILED, ESCALATED or BLOCKED; all without GLOB.",
        ),
    ] = None,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    plain: Plain = False,
    compat: Compat = None,
    as_json: AsJson = False,
) -> None:
    """Go on with an interrupted or ended run. DONE tasks are skipped, ESCALATED ones stay.

    A budget given here counts before the manifest's, until it is given anew or reconciled.

    Example: cacp thread resume manifest.json --retry-failed
    """
    from threader.session import resume_run

    with _mistakes(as_json):
        opened, changes = resume_run(
            _load(manifest),
            reconciling=reconcile,
            retry=retry or (),
            retry_failed=retry_failed,
            budget=_budget(budget_tokens, budget_usd),
        )
        for line in changes.lines():
            typer.echo(f"reconciled {line}", err=True)
        _go(opened, plain=plain, compat=compat, as_json=as_json)


def _go(opened: "Run", *, plain: bool, compat: str | None, as_json: bool) -> None:
    from threader.drive import drive

    code, summary = drive(opened, plain=plain, compat=compat, as_json=as_json)
    if as_json:
        typer.echo(json.dumps(summary))
    elif code != INTERRUPTED:
        typer.echo(f"report: {summary['report']}")
    raise typer.Exit(code)


@app.command()
def validate(manifest: ManifestPath, as_json: AsJson = False) -> None:
    """Check a manifest and all it names, and show the order of its tasks.

    Example: cacp thread validate manifest.json
    """
    from threader.plan import stable_order

    with _mistakes(as_json):
        project = _load(manifest)
        order = stable_order(project.manifest.tasks)
        if as_json:
            _print_json({"ok": True, "order": order})
            return
        typer.echo(f"{manifest.name} is valid: {len(order)} tasks, in this order:")
        needs = {task.id: task.depends_on for task in project.manifest.tasks}
        for number, task_id in enumerate(order, 1):
            after = f"  after {', '.join(needs[task_id])}" if needs[task_id] else ""
            typer.echo(f"{number:>5}  {task_id}{after}")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where the manifest goes.")] = Path(),
    run_id: Annotated[str, typer.Option("--run-id", help="The run's name.")] = "run-1",
    as_json: AsJson = False,
) -> None:
    """Write a minimal manifest, verification profile and prompt to fill in.

    Example: cacp thread init tasks --run-id run-20260320
    """
    from threader.scaffold import init as write

    with _mistakes(as_json):
        _made(write(folder, run_id), as_json)


@app.command()
def scaffold(
    folder: Annotated[Path, typer.Argument(help="A new folder.")], as_json: AsJson = False
) -> None:
    """Write a working example: a small repository, nine tasks, a worker and a healer.

    Example: cacp thread scaffold demo
    """
    from threader.scaffold import scaffold as write

    with _mistakes(as_json):
        _made(write(folder), as_json)
        if not as_json:
            typer.echo(f"now: cacp thread run {folder / 'manifest.json'}")


def _made(files: list[str], as_json: bool) -> None:
    if as_json:
        _print_json({"ok": True, "files": files})
    else:
        typer.echo("\n".join(files))


@app.command()
def status(manifest: ManifestPath, as_json: AsJson = False) -> None:
    """Show where a run stands, also while another process runs it.

    Example: cacp thread status manifest.json --json
    """
    from threader.outbox import outbox_summary
    from threader.overview import overview, overview_lines
    from threader.session import load_state
    from threader.store import RunStore

    with _mistakes(as_json):
        project = _load(manifest)
        store = RunStore(project.state_dir)
        reports = outbox_summary(project.state_dir)
        facts = overview(project, load_state(project), reports, store.lock.holder())
        if as_json:
            _print_json(facts)
        else:
            typer.echo("\n".join(overview_lines(facts)))


@app.command()
def logs(
    manifest: ManifestPath,
    task: Annotated[str | None, typer.Option("--task", help="Only this task's.")] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", help="worker, verify, healer or rollback.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Show what is added, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the logs of a run's attempts, oldest first; with --json, list them.

    Example: cacp thread logs manifest.json --task WP-017 --phase verify
    """
    from threader.errors import ThreaderError
    from threader.overview import find_logs, follow_logs

    with _mistakes(as_json):
        project = _load(manifest)
        folder = project.state_dir
        found = find_logs(folder, task, phase)
        if task and not found and all(task != known.id for known in project.manifest.tasks):
            raise ThreaderError(f"--task: {task} is no task of this manifest")
        if as_json:
            _print_json([path.relative_to(folder).as_posix() for path in found])
            return
        for path in found:
            typer.echo(f"==> {path.name} <==")
            typer.echo(path.read_text(errors="replace"))
        if follow:
            follow_logs(folder, task, phase, sys.stdout)


@app.command()
def report(manifest: ManifestPath, as_json: AsJson = False) -> None:
    """Write the report of a run, as one HTML page and as Markdown.

    Example: cacp thread report manifest.json
    """
    from threader.report import write_report
    from threader.session import load_state
    from threader.store import RunStore

    with _mistakes(as_json):
        project = _load(manifest)
        runner = RunStore(project.state_dir).lock.holder()
        html, markdown = write_report(project, load_state(project), runner)
        if as_json:
            _print_json({"html": str(html), "markdown": str(markdown)})
        else:
            typer.echo(f"{html}\n{markdown}")


@app.command("parse-result")
def parse_result(
    log: Annotated[Path, typer.Argument(help="A worker's output.", exists=True, dir_okay=False)],
    task: Annotated[str, typer.Option("--task", help="The task it should be for.")],
    as_json: AsJson = False,
) -> None:
    """Read a worker's output as the runner would. Exit status 1: no valid result.

    Example: cacp thread parse-result answer.txt --task WP-017
    """
    from threader.parsing import parse_result as parse

    _show_parsed(parse(log.read_bytes(), task), as_json)


@app.command("parse-heal")
def parse_heal(
    log: Annotated[Path, typer.Argument(help="A healer's output.", exists=True, dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Read a healer's output as the runner would. Exit status 1: no valid decision.

    Example: cacp thread parse-heal answer.txt
    """
    from threader.parsing import parse_decision

    _show_parsed(parse_decision(log.read_bytes()), as_json)


def _show_parsed(parsed: Any, as_json: bool) -> None:
    from threader.parsing import ParserFailure

    if isinstance(parsed, ParserFailure):
        if as_json:
            _print_json({"ok": False, "code": parsed.code, "message": parsed.message})
        else:
            typer.echo(f"{parsed.code}: {parsed.message}", err=True)
        raise typer.Exit(1)
    value = parsed.value.model_dump(mode="json", exclude_none=True)
    if as_json:
        _print_json({"ok": True, "warnings": parsed.warnings, "value": value})
        return
    for warning in parsed.warnings:
        typer.echo(f"warning: {warning}", err=True)
    _print_json(value)


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(help="A code, class or status.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a parser code, failure class or status means, and what to do.

    Example: cacp thread explain write_rejected
    """
    from threader.errors import ThreaderError
    from threader.overview import explanations

    texts = explanations()
    if code is None:
        found = texts
    else:
        found = {name: text for name, text in texts.items() if name.lower() == code.lower()}
    with _mistakes(as_json):
        if not found:
            raise ThreaderError(f"{code} is none of {', '.join(texts)}")
    if as_json:
        _print_json(found)
        return
    for name, text in found.items():
        typer.echo(f"{name}: {text}")


@app.command()
def skill(
    platform: Annotated[
        str | None, typer.Argument(help="claude, codex, cursor or windsurf: how to install it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the skill that teaches an agent to use the threader, or a platform's notes on it.

    Example: cacp thread skill > .claude/skills/agent-threader/SKILL.md
    """
    from threader.scaffold import skill as text_of

    with _mistakes(as_json):
        text = text_of(platform)
    if as_json:
        _print_json({"platform": platform, "text": text})
    else:
        typer.echo(text, nl=False)


@app.command()
def doctor(
    manifest: ManifestPath,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask each CLI for one contract, in a scratch folder.")
    ] = False,
    probe_sec: Annotated[
        float, typer.Option("--probe-sec", min=1, help="How long each CLI has to answer.")
    ] = 180,
    compat: Compat = None,
    as_json: AsJson = False,
) -> None:
    """Check that a manifest can be run here: files, CLIs, git. Exit status 1: it cannot.

    Without --probe no model is asked and nothing is run. With it, worker and healer each have one
    tiny task to answer by their contract, as they would in the night.

    Example: cacp thread doctor manifest.json --probe
    """
    from threader.compat import result_reader
    from threader.doctor import examine
    from threader.probe import probe_all

    with _mistakes(as_json):
        project = _load(manifest)
        read_result = result_reader(compat)
        findings = examine(project)
        if probe:
            findings += probe_all(project, probe_sec, read_result)
    if as_json:
        _print_json([{"ok": item.ok, "text": item.text} for item in findings])
    else:
        for item in findings:
            typer.echo(f"{'ok  ' if item.ok else 'BAD '} {item.text}")
    raise typer.Exit(0 if all(item.ok for item in findings) else 1)
