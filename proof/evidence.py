"""Runs the commands of a handoff's evidence again, each at its commit (design-next N2).

Another agent wrote them. They run with the rights of whoever checks, in a temporary worktree, and
see no key of this software in their environment.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proof.command import EndedCommand, run_command
from proof.git_tree import GitProblem, GitTree, clean_environment
from schemas.handoff_evidence import HandoffCommandEvidence, HandoffCommandRun
from schemas.plain import clean, one_line

TAIL_BYTES = 8_192
TAIL_LINES = 20
DETAIL_MAX = 500


@dataclass(frozen=True, slots=True)
class EvidenceRun:
    """How a command ended here, as the node records it; `tail` is the end of what it printed."""

    run: HandoffCommandRun
    tail: str = ""


def run_again(
    tree: GitTree,
    claimed: HandoffCommandEvidence,
    *,
    time_limit: float,
    prepare: Sequence[str] = (),
) -> EvidenceRun:
    """Run a command in a temporary worktree of its commit, after `prepare` if there is one.
    `time_limit` is in seconds, of each of the two."""
    if not tree.has(claimed.commit):
        return _not_run(
            f"commit {claimed.commit[:12]} is not in this repository: fetch it, or check in another"
        )
    try:
        with tree.worktree(claimed.commit, fetches=False) as folder:
            if prepare:
                ready, tail = _run(prepare, folder, time_limit)
                if not ready.passed:
                    why = ready.problem or f"it ended with {ready.exit_code}"
                    return _not_run(f"--prepare failed: {why}", tail)
            run, tail = _run(shlex.split(claimed.command), folder, time_limit)
    except GitProblem as problem:
        return _not_run(str(problem))
    if run.problem or run.is_missing:
        return _not_run(run.problem or f"it ended with {run.exit_code}: a program is missing", tail)
    ended = HandoffCommandRun(exit_code=run.exit_code, output_digest=run.output_digest)
    return EvidenceRun(ended, tail)


def _run(words: Sequence[str], folder: Path, time_limit: float) -> tuple[EndedCommand, str]:
    """How a command ended, and the end of what it printed."""
    last = bytearray()

    def printed(piece: bytes) -> None:
        last.extend(piece)
        del last[:-TAIL_BYTES]

    run = run_command(words, folder, printed, environment_of_others(), time_limit)
    lines = clean(bytes(last).decode(errors="replace")).splitlines()
    return run, "\n".join(lines[-TAIL_LINES:])


def environment_of_others() -> dict[str, str]:
    """This process's environment without what names a checkout, a node or a key of one."""
    return {
        name: value for name, value in clean_environment().items() if not name.startswith("CACP_")
    }


def _not_run(why: str, tail: str = "") -> EvidenceRun:
    return EvidenceRun(HandoffCommandRun(detail=one_line(why, DETAIL_MAX)), tail)
