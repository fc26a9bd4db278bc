"""`cacp thread receipts`: a runner's receipts of what a run of the threader has built."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.options import JsonOption, RunnerKeyOption
from cli.terminal import REFUSED, notice
from cli.thread_output import ManifestArgument, load, print_json, report_mistakes

if TYPE_CHECKING:
    from proof.runner_key import RunnerKeys
    from schemas.run_state import RunState
    from schemas.verify_profile import VerifyProfile
    from threader.load import ThreadProject

Json = dict[str, Any]
TOOL = "thread"


class LandedContract(NamedTuple):
    """A contract that a task has implemented, and the commit that holds it, if any."""

    contract_id: str
    task_id: str
    profile: "VerifyProfile"
    commit: str | None


def receipts(
    manifest: ManifestArgument,
    key_file: RunnerKeyOption = None,
    repo: Annotated[
        str | None,
        typer.Option(help="The repo's name in the project. By default that of the runner's key."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the verification profiles again as a runner, and record receipts of them.

    For each task that is DONE and implements a contract: at the commit that holds it, in a
    temporary worktree, once the run has reported it complete. A run verifies its tasks before it
    reports them, and its workers could read a key that it had: so this is a step of its own, for
    who has the runner's key. It needs `isolation: worktree`, which commits.

    Exit status: 0 each is proven, 1 not each.

    Example: cacp thread receipts manifest.json --key-file runner.json
    """
    from cli.receipts import runner_keys
    from threader.errors import ThreaderError
    from threader.session import load_state

    keys = runner_keys(key_file)
    with report_mistakes(as_json):
        project = load(manifest)
        if project.manifest.node is None:
            raise ThreaderError("the manifest names no node: nothing asks for receipts")
        landed = list(landed_contracts(project, load_state(project)))
    made = [_receipt(project, keys, repo, each, quiet=as_json) for each in landed]
    if as_json:
        print_json(made)
    elif not made:
        notice("no task is DONE that implements a contract")
    raise typer.Exit(0 if all(each.get("proves") for each in made) else REFUSED)


def landed_contracts(project: "ThreadProject", state: "RunState") -> Iterator[LandedContract]:
    """The contracts that tasks have implemented: of several tasks of one, the last to land."""
    from schemas.run_state import TaskStatus
    from threader.reports import landed_commit

    last: dict[str, tuple[str, LandedContract]] = {}
    for task in project.manifest.tasks:
        run = state.tasks[task.id]
        if task.contract_id is None or run.status is not TaskStatus.DONE:
            continue
        when = max((record.timestamp for record in run.history), default="")
        profile = project.profile_of(task)
        landed = LandedContract(task.contract_id, task.id, profile, landed_commit(run))
        if when >= last.get(task.contract_id, ("",))[0]:
            last[task.contract_id] = when, landed
    for _, landed in last.values():
        yield landed


def _receipt(
    project: "ThreadProject",
    keys: "RunnerKeys",
    repo: str | None,
    landed: LandedContract,
    *,
    quiet: bool,
) -> Json:
    """Verify one contract; what became of its receipt."""
    from proof.git_tree import GitProblem, GitTree

    made: Json = {"contractId": landed.contract_id, "task": landed.task_id}
    try:
        if landed.commit is None:
            raise GitProblem("its writes are in no commit: use `isolation: worktree`")
        if not landed.profile.steps:
            raise GitProblem("its profile has no steps, and would prove nothing")
        tree = GitTree.at(project.workspace)
        with tree.worktree(landed.commit) as folder:
            return made | _verified(project, keys, repo, landed, folder, quiet=quiet)
    except GitProblem as problem:
        notice(f"task {landed.task_id}: nothing was run: {problem}")
        return made | {"status": "not_run", "problem": str(problem)}
    except typer.Exit:
        # Why is told already.
        return made | {"status": "not_run"}


def _verified(
    project: "ThreadProject",
    keys: "RunnerKeys",
    repo: str | None,
    landed: LandedContract,
    folder: Path,
    *,
    quiet: bool,
) -> Json:
    from cli.receipts import ProvenSide, asked_of, record, tell
    from cli.verify import BaseOptions, RunnerCommand, run_and_sign
    from proof.git_tree import GitTree, clean_environment
    from threader.verify import base_environment, script_of

    node, profile = project.manifest.node, landed.profile
    assert node is not None
    tree = GitTree.at(folder)
    asked = asked_of(keys, node.url, ProvenSide(landed.contract_id, repo), tree)
    environment = base_environment(profile, clean_environment())
    script = script_of(profile)
    command = RunnerCommand(["/bin/sh", "-c", script], quiet, TOOL, environment)
    _, receipt = run_and_sign(asked, tree, keys, command, BaseOptions())
    recorded = record(keys, node.url, asked.project_id, receipt, tree)
    tell(receipt, recorded)
    return {"outcome": receipt.outcome, "commit": receipt.commit, **recorded}
