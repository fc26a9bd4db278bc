"""How `cacp probe` tries events and data models: by samples, or by a command."""

import os
import subprocess
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.agreements import NOT_RUN
from cli.probe_options import ProbeOptions
from cli.terminal import REFUSED, USAGE, fail

if TYPE_CHECKING:
    from proof.agreed import AgreedContract
    from proof.git_tree import GitTree
    from proof.probe_outcome import ProbeOutcome
    from proof.samples import CommandEnd

SAID_MAX = 300
_ProbeSide = Literal["provider", "consumer"]


@dataclass(frozen=True)
class SampleOptions:
    """What makes or takes messages."""

    samples: Annotated[
        Path | None,
        typer.Option(
            "--samples",
            metavar="FOLDER",
            help="Messages or models that a provider made: a JSON file each, or a line each of "
            "JSONL files.",
        ),
    ] = None
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help="A provider's command, which prints messages, a line of JSON each; or a "
            "consumer's, which reads such lines and ends with status 0.",
        ),
    ] = None
    side: Annotated[_ProbeSide, typer.Option("--side", help="Whose the --command is.")] = "provider"


def check_tracked(folder: Path, tree: "GitTree") -> None:
    """End the command unless all samples are files of the commit, of which the receipt is."""
    from proof.samples import sample_files

    top = tree.top.resolve()
    listed = subprocess.run(["git", "-C", top, "ls-files", "-z"], capture_output=True, check=False)
    tracked = {top / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    for path in sample_files(folder):
        if path.resolve() not in tracked:
            fail(
                REFUSED,
                f"nothing was run: {path} is in no commit of this checkout, and a receipt is of "
                "the commit: commit the samples, or make them with --command",
            )


def tried_samples(
    contract: "AgreedContract", what: SampleOptions, how: ProbeOptions, seed: int
) -> "ProbeOutcome":
    """The outcome for samples or a command. Ends the command line if they can't be read or run."""
    from proof.samples import check_samples, failed_command, feed, lines_of, samples_in
    from proof.sender import Halted
    from proof.time_limit import halting_after

    if what.samples is not None:
        if not what.samples.is_dir():
            fail(USAGE, f"{what.samples} is no folder")
        try:
            return check_samples(contract, samples_in(what.samples), how.allow_skipped)
        except OSError as error:
            fail(USAGE, f"can't read {what.samples}: {error.strerror}")
    command = what.command or ""
    if what.side == "consumer":
        run = partial(_ended_with, command, how.time_limit)
        try:
            with halting_after(how.time_limit):
                return feed(contract, run, command, how.cases, seed, how.allow_skipped)
        except Halted as error:
            fail(NOT_RUN, str(error))
    ended, printed = _ended(command, b"", how.time_limit)
    outcome = check_samples(contract, lines_of("output", printed), how.allow_skipped)
    if not ended.status:
        return outcome
    failure = failed_command(outcome, ended)
    return replace(outcome, failures=(failure, *outcome.failures))


def _ended_with(command: str, seconds: float, given: bytes) -> "CommandEnd":
    return _ended(command, given, seconds)[0]


def _ended(command: str, given: bytes, seconds: float) -> tuple["CommandEnd", bytes]:
    """Run a command in a shell; how it ended, and what it printed."""
    from proof.samples import CommandEnd

    try:
        done = subprocess.run(
            ["sh", "-c", command], input=given, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        fail(NOT_RUN, f"--command did not end within {seconds:g} s; --time-limit gives more")
    end = CommandEnd(done.returncode, done.stderr.decode(errors="replace")[-SAID_MAX:])
    return end, done.stdout
