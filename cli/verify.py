"""`cacp verify`: run a test command, and let a runner's receipt of it verify a contract."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import DEFAULT_URL, NodeUnreachable
from cli.options import JsonOption, RunnerKeyOption, UrlOption, grouped
from cli.receipts import (
    OutOption,
    ProvenSide,
    asked_of,
    checkout,
    has_moved,
    record,
    runner_keys,
    sent,
    tell,
    tell_recorded,
    write_copy,
)
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.command import EndedCommand
    from proof.git_tree import GitTree
    from proof.runner_key import RunnerKeys
    from proof.subject import ProofSubject
    from schemas.receipt import ProofReceipt


@dataclass(frozen=True)
class BaseOptions:
    """How a failure is told from one that was there before."""

    base: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT",
            help="The branch or commit that the work is based on. By default the remote's main "
            "branch, else main or master.",
        ),
    ] = None
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this before the command at the base commit, where nothing is installed yet, "
            "such as 'npm ci'.",
        ),
    ] = None


@grouped
def verify(
    subject: ProvenSide,
    base: BaseOptions,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="The test command with its arguments, after --."),
    ] = None,
    key_file: RunnerKeyOption = None,
    out: OutOption = None,
    send: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Send a receipt that was kept, and run nothing."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Run a test command, and record a receipt of it that verifies a contract.

    In a clean git checkout of the commit that the repo has declared complete. The receipt says what
    ran on which commit and how it ended, signed with the runner's key. If the command fails, it
    runs again at the base commit in a temporary worktree: a failure that was there before is an
    inherited one, not a regression.

    The exit status is the command's. With 1 and "nothing was run" the receipt would have proven
    nothing, and it says why. A receipt that can't be sent is kept, to be sent with --send.

    \b
    Examples:
      cacp verify --contract "Get profile" --key-file runner.json -- make test
      cacp verify --contract 0198c0df --repo frontend-app --prepare 'npm ci' -- npm test
      cacp verify --key-file runner.json --send .git/cacp/receipt-0198c0df-4be1.json
    """
    keys = runner_keys(key_file)
    if send is not None:
        _send_kept(keys, url, send, as_json=as_json)
        return
    if not command or subject.contract is None:
        fail(USAGE, "name the contract and the command: cacp verify --contract NAME -- COMMAND")
    tree = checkout()
    _check_base(tree, base)
    asked = asked_of(keys, url, subject, tree)
    given = RunnerCommand(command, quiet=as_json)
    run, receipt = run_and_sign(asked, tree, keys, given, base)
    write_copy(out, asked.project_id, receipt)
    recorded = record(keys, url, asked.project_id, receipt, tree)
    if as_json:
        print_json({"receipt": receipt.wire(), **recorded})
    else:
        tell(receipt, recorded)
    raise typer.Exit(run.exit_code)


# --- the run ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunnerCommand:
    """A test command. `quiet`: its output goes to stderr; `tool` is what the receipt names; without
    an `environment` it has this process's."""

    words: list[str]
    quiet: bool
    tool: str = "verify"
    environment: Mapping[str, str] | None = None

    def run(self, folder: Path, *, quiet: bool = False) -> "EndedCommand":
        from proof.command import run_command

        printed = _printer(quiet=quiet or self.quiet)
        return run_command(self.words, folder, printed, self.environment)


def run_and_sign(
    asked: "ProofSubject",
    tree: "GitTree",
    keys: "RunnerKeys",
    command: RunnerCommand,
    base: BaseOptions,
) -> tuple["EndedCommand", "ProofReceipt"]:
    """Run the command, again at the base commit if it fails, and sign the receipt."""
    from cli.live_view import ended_by_signals
    from proof.receipts import receipt_of_command

    at_base, commit = None, None
    # Whoever ends this ends the command too, and leaves no worktree of the base behind.
    with ended_by_signals():
        run = command.run(tree.folder)
        if run.problem:
            notice(f"the command can't be run here: {run.problem}")
        if not run.passed and not run.is_missing and not run.was_ended:
            at_base, commit = _run_at_base(tree, command, base)
    receipt = receipt_of_command(
        asked,
        tree,
        keys,
        command.words,
        run,
        at_base=at_base,
        base=commit,
        is_dirty=has_moved(tree),
        tool=command.tool,
    )
    return run, receipt


def _check_base(tree: "GitTree", options: BaseOptions) -> None:
    """End the command when the base that was named is not there."""
    from proof.git_tree import GitProblem

    if options.base is None:
        return
    try:
        tree.base(options.base)
    except GitProblem:
        fail(USAGE, f"--base: this repository has no branch or commit {one_line(options.base, 80)}")


def _run_at_base(
    tree: "GitTree", command: RunnerCommand, base: BaseOptions
) -> tuple["EndedCommand | None", str | None]:
    """The command at the base commit, and that commit; None where it can't be run there."""
    from proof.command import run_command
    from proof.git_tree import GitProblem

    try:
        commit = tree.base(base.base)
        if commit is None:
            notice("it failed, and there is no earlier commit to compare with")
            return None, None
        notice(f"it failed: running it at the base commit {commit[:12]} too")
        with tree.worktree(commit) as folder:
            if base.prepare is not None:
                ready = run_command(shlex.split(base.prepare), folder, _printer(quiet=True))
                if not ready.passed:
                    notice(f"--prepare failed there, with {ready.exit_code}")
                    return None, None
            return command.run(folder, quiet=True), commit
    except (GitProblem, ValueError) as problem:
        notice(f"it could not be run at the base commit: {problem}")
        return None, None


def _printer(*, quiet: bool) -> "Any":
    """Passes output on: to stderr if stdout is for the result."""
    stream = (sys.stderr if quiet else sys.stdout).buffer

    def printed(piece: bytes) -> None:
        stream.write(piece)
        stream.flush()

    return printed


# --- a receipt that was kept ------------------------------------------------------------------


def _send_kept(keys: "RunnerKeys", url: str, file: Path, *, as_json: bool) -> None:
    import json

    try:
        kept = json.loads(file.read_text())
        project_id, receipt = str(kept["projectId"]), dict(kept["receipt"])
        str(receipt["contractId"])
    except OSError as error:
        fail(REFUSED, f"{file} can't be read: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        fail(REFUSED, f"{file} holds no receipt that `cacp verify` has kept")
    try:
        answer = sent(keys, url, project_id, receipt)
    except NodeUnreachable as problem:
        fail(UNREACHABLE, f"{problem}: {file} stays as it is")
    if as_json:
        print_json({"receipt": receipt, **answer})
    elif answer["status"] != "refused":
        tell_recorded(receipt, answer)
    if answer["status"] == "refused":
        fail(REFUSED, answer["problem"])
