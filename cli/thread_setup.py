"""The commands of `cacp thread` before a run: write a manifest, check it, teach an agent."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption
from cli.thread_output import CompatOption, ManifestArgument, load, print_json, report_mistakes


def validate(manifest: ManifestArgument, as_json: JsonOption = False) -> None:
    """Check a manifest and every file that it names, and show the order of its tasks.

    Example: cacp thread validate manifest.json
    """
    from threader.plan import stable_order

    with report_mistakes(as_json):
        project = load(manifest)
        order = stable_order(project.manifest.tasks)
        if as_json:
            print_json({"ok": True, "order": order})
            return
        typer.echo(f"{manifest.name} is valid: {len(order)} tasks, in this order:")
        needs = {task.id: task.depends_on for task in project.manifest.tasks}
        for number, task_id in enumerate(order, 1):
            after = f"  after {', '.join(needs[task_id])}" if needs[task_id] else ""
            typer.echo(f"{number:>5}  {task_id}{after}")


def init(
    folder: Annotated[
        Path, typer.Argument(help="The folder to write to; the current one by default.")
    ] = Path(),
    run_id: Annotated[str, typer.Option("--run-id", help="The name of the run.")] = "run-1",
    as_json: JsonOption = False,
) -> None:
    """Write a minimal manifest, verification profile and prompt, for you to fill in.

    Example: cacp thread init tasks --run-id run-20260320
    """
    from threader.scaffold import init as write

    with report_mistakes(as_json):
        _made(write(folder, run_id), as_json)


def scaffold(
    folder: Annotated[Path, typer.Argument(help="The folder to make.")], as_json: JsonOption = False
) -> None:
    """Write a working example: a small repository, nine tasks, a worker and a healer.

    Example: cacp thread scaffold demo
    """
    from threader.scaffold import scaffold as write

    with report_mistakes(as_json):
        _made(write(folder), as_json)
        if not as_json:
            typer.echo(f"now: cacp thread run {folder / 'manifest.json'}")


def _made(files: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"ok": True, "files": files})
    else:
        typer.echo("\n".join(files))


def skill(
    platform: Annotated[
        str | None,
        typer.Argument(help="claude, codex, cursor or windsurf: how to install the skill there."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the skill that teaches an agent to use the threader.

    With a platform, print how to install the skill there.

    Example: cacp thread skill > .claude/skills/agent-threader/SKILL.md
    """
    from threader.scaffold import skill as text_of

    with report_mistakes(as_json):
        text = text_of(platform)
    if as_json:
        print_json({"platform": platform, "text": text})
    else:
        typer.echo(text, nl=False)


def doctor(
    manifest: ManifestArgument,
    probe: Annotated[
        bool, typer.Option("--probe", help="Give each CLI a tiny task, in a scratch folder.")
    ] = False,
    probe_sec: Annotated[
        float,
        typer.Option("--probe-sec", min=1, metavar="SECONDS", help="How long each CLI may take."),
    ] = 180,
    compat: CompatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a manifest can be run here: its files, the agent CLIs, and git.

    Without --probe no model is called and nothing is run. With it, the worker and the healer each
    get one tiny task, whose result must be valid for a run.

    Exit status: 0 it can be run, 1 it can't, 2 manifest error.

    Example: cacp thread doctor manifest.json --probe
    """
    from threader.compat import result_reader
    from threader.doctor import examine
    from threader.probe import probe_all

    with report_mistakes(as_json):
        project = load(manifest)
        read_result = result_reader(compat)
        findings = examine(project)
        if probe:
            findings += probe_all(project, probe_sec, read_result)
    if as_json:
        print_json([{"ok": item.ok, "text": item.text} for item in findings])
    else:
        for item in findings:
            typer.echo(f"{'ok  ' if item.ok else 'BAD '} {item.text}")
    raise typer.Exit(0 if all(item.ok for item in findings) else 1)
