"""`cacp thread`: run agent CLIs over a manifest of tasks. The commands import what is heavy."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cli import thread_parsing, thread_setup
from cli.options import JsonOption
from cli.thread_output import (
    INTERRUPTED,
    CompatOption,
    ManifestArgument,
    load,
    print_json,
    report_mistakes,
)
from cli.thread_receipts import receipts

if TYPE_CHECKING:
    from schemas.manifest import Budget
    from threader.orchestrator import Orchestrator

app = typer.Typer(
    name="thread",
    help="Run agent CLIs over a manifest of tasks: each result is verified, failures are healed, "
    "and a run can be resumed.\n\n"
    "Example: cacp thread run manifest.json",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Start over; the files of the old run are kept beside it.")
]
PlainOption = Annotated[bool, typer.Option("--plain", help="Print lines instead of the live view.")]
BudgetTokensOption = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens", min=1, help="Stop when this many tokens, in and out, are used."
    ),
]
BudgetUsdOption = Annotated[
    float | None,
    typer.Option("--budget-usd", min=0.01, help="Stop when this many US dollars are spent."),
]


@app.command()
def run(
    manifest: ManifestArgument,
    fresh: FreshOption = False,
    budget_tokens: BudgetTokensOption = None,
    budget_usd: BudgetUsdOption = None,
    plain: PlainOption = False,
    compat: CompatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the tasks of a manifest to their end, or until its budget is used up.

    Exit status: 0 all tasks are DONE, 1 not all are, 2 usage or manifest error, 130
    interrupted: `cacp thread resume` continues.

    Example: cacp thread run manifest.json
    """
    from threader.session import start_run

    with report_mistakes(as_json):
        budget = _budget(budget_tokens, budget_usd)
        opened = start_run(load(manifest), fresh=fresh, budget=budget)
        _go(opened, plain=plain, compat=compat, as_json=as_json)


class _Resume(TyperCommand):
    """Accepts `--retry-failed` without a value: it then means all of them."""

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
    manifest: ManifestArgument,
    reconcile: Annotated[
        bool, typer.Option("--reconcile", help="Adopt the changes of the manifest.")
    ] = False,
    retry: Annotated[
        list[str] | None, typer.Option("--retry", help="Start this task again; repeatable.")
    ] = None,
    retry_failed: Annotated[
        str | None,
        typer.Option(
            "--retry-failed",
            metavar="[GLOB]",
            help="Start tasks again that ended FAILED, ESCALATED or BLOCKED: those whose id "
            "matches GLOB, by default all.",
        ),
    ] = None,
    budget_tokens: BudgetTokensOption = None,
    budget_usd: BudgetUsdOption = None,
    plain: PlainOption = False,
    compat: CompatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue an interrupted or ended run. DONE tasks are skipped, ESCALATED ones stay.

    A budget given here replaces the manifest's, until another is given or --reconcile adopts the
    manifest's.

    Example: cacp thread resume manifest.json --retry-failed
    """
    from threader.session import resume_run

    with report_mistakes(as_json):
        opened, changes = resume_run(
            load(manifest),
            reconciling=reconcile,
            retry=retry or (),
            retry_failed=retry_failed,
            budget=_budget(budget_tokens, budget_usd),
        )
        for line in changes.lines():
            typer.echo(f"reconciled {line}", err=True)
        _go(opened, plain=plain, compat=compat, as_json=as_json)


app.command()(thread_setup.validate)
app.command()(thread_setup.init)
app.command()(thread_setup.scaffold)


@app.command()
def status(manifest: ManifestArgument, as_json: JsonOption = False) -> None:
    """Show the progress of a run, also while another process runs it.

    Example: cacp thread status manifest.json --json
    """
    from threader.outbox import outbox_summary
    from threader.overview import overview, overview_lines
    from threader.session import load_state
    from threader.store import RunStore

    with report_mistakes(as_json):
        project = load(manifest)
        store = RunStore(project.state_dir)
        reports = outbox_summary(project.state_dir)
        facts = overview(project, load_state(project), reports, store.lock.holder())
        if as_json:
            print_json(facts)
        else:
            typer.echo("\n".join(overview_lines(facts)))


@app.command()
def logs(
    manifest: ManifestArgument,
    task: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="Only the logs of this task.")
    ] = None,
    phase: Annotated[
        str | None,
        typer.Option("--phase", help="Only this phase: worker, verify, healer or rollback."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep printing what is added.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the logs of a run's attempts, the oldest first. With --json, list the files.

    Example: cacp thread logs manifest.json --task WP-017 --phase verify
    """
    from threader.errors import ThreaderError
    from threader.overview import find_logs, follow_logs

    with report_mistakes(as_json):
        project = load(manifest)
        folder = project.state_dir
        log_files = find_logs(folder, task, phase)
        if task and not log_files and all(task != known.id for known in project.manifest.tasks):
            raise ThreaderError(f"--task: {task} is not a task of this manifest")
        if as_json:
            print_json([path.relative_to(folder).as_posix() for path in log_files])
            return
        for path in log_files:
            typer.echo(f"==> {path.name} <==")
            typer.echo(path.read_text(errors="replace"))
        if follow:
            follow_logs(folder, task, phase, sys.stdout)


@app.command()
def report(manifest: ManifestArgument, as_json: JsonOption = False) -> None:
    """Write the report of a run as one HTML page and as Markdown, and print their paths.

    Example: cacp thread report manifest.json
    """
    from threader.report import write_report
    from threader.session import load_state
    from threader.store import RunStore

    with report_mistakes(as_json):
        project = load(manifest)
        runner = RunStore(project.state_dir).lock.holder()
        html, markdown = write_report(project, load_state(project), runner)
        if as_json:
            print_json({"html": str(html), "markdown": str(markdown)})
        else:
            typer.echo(f"{html}\n{markdown}")


app.command("parse-result")(thread_parsing.parse_result)
app.command("parse-heal")(thread_parsing.parse_heal)
app.command()(thread_parsing.explain)
app.command()(receipts)
app.command()(thread_setup.skill)
app.command()(thread_setup.doctor)


def _go(opened: "Orchestrator", *, plain: bool, compat: str | None, as_json: bool) -> None:
    from threader.drive import drive

    code, summary = drive(opened, plain=plain, compat=compat, as_json=as_json)
    if as_json:
        typer.echo(json.dumps(summary))
    elif code != INTERRUPTED:
        typer.echo(f"report: {summary['report']}")
    raise typer.Exit(code)


def _budget(tokens: int | None, usd: float | None) -> "Budget | None":
    from schemas.manifest import Budget

    return None if tokens is None and usd is None else Budget(tokens=tokens, usd=usd)
