"""Makes receipts: of a command that was run, and of a probe."""

import shlex
from collections.abc import Sequence

from peers.receipts import signed
from proof.command import EndedCommand
from proof.git_tree import GitTree
from proof.probe_outcome import EXIT_STATUS, ProbeOutcome
from proof.runner_key import RunnerKeys
from proof.subject import ProofSubject
from schemas.base import TEXT_MAX
from schemas.receipt import ProofReceipt, ProofRun, ReceiptOutcome

VERIFY = "verify"
"""The tool of a receipt of a command."""
_OF_PROBE: dict[str, ReceiptOutcome] = {
    "passed": "passed",
    "failed": "unclassified",
    "not_run": "missing_capability",
}


def outcome_of(run: EndedCommand, at_base: EndedCommand | None) -> ReceiptOutcome:
    """What a run means. `at_base` is the same command at the base commit, None if it was not run
    there or could not be made ready."""
    if run.passed:
        return "passed"
    if run.is_missing:
        return "missing_capability"
    if run.was_ended or at_base is None or at_base.is_missing or at_base.was_ended:
        return "unclassified"
    return "regression" if at_base.passed else "inherited_failure"


def receipt_of_command(
    subject: ProofSubject,
    tree: GitTree,
    keys: RunnerKeys,
    command: Sequence[str],
    run: EndedCommand,
    *,
    at_base: EndedCommand | None = None,
    base: str | None = None,
    is_dirty: bool = False,
    tool: str = VERIFY,
) -> ProofReceipt:
    """The receipt of a command that was run in a checkout. `is_dirty`: the tree or its commit
    changed meanwhile."""
    return _signed(
        subject,
        tree,
        keys,
        dirty=tree.is_dirty or is_dirty,
        base=None if at_base is None else base,
        tool=tool,
        command=shlex.join(command)[:TEXT_MAX],
        exit_code=run.exit_code,
        outcome=outcome_of(run, at_base),
        output_digest=run.output_digest,
        started_at=run.started_at,
        duration=run.duration,
    )


def receipt_of_probe(
    subject: ProofSubject,
    tree: GitTree,
    keys: RunnerKeys,
    outcome: ProbeOutcome,
    command: str | None = None,
    *,
    is_dirty: bool = False,
) -> ProofReceipt:
    """The receipt of a probe, or of a recording that was held against the contract. A failed one is
    `unclassified`: a probe isn't repeated at the base commit. `command` is what was typed, without
    its secrets. `is_dirty`: the tree or its commit changed meanwhile.

    Raises ValueError when the probe was held against other content than the version's.
    """
    if outcome.contract_digest != subject.digest:
        raise ValueError(
            f"the probe was held against the content {outcome.contract_digest[:12]}…, and version "
            f"{subject.version} of {subject.contract} has {subject.digest[:12]}…"
        )
    return _signed(
        subject,
        tree,
        keys,
        dirty=tree.is_dirty or is_dirty,
        tool=outcome.tool,
        target=outcome.target,
        seed=outcome.seed,
        cases=outcome.cases,
        command=None if command is None else command[:TEXT_MAX],
        exit_code=EXIT_STATUS[outcome.result],
        outcome=_OF_PROBE[outcome.result],
        output_digest=outcome.output_digest,
        started_at=outcome.started_at,
        duration=outcome.duration,
    )


def _signed(
    subject: ProofSubject, tree: GitTree, keys: RunnerKeys, **members: object
) -> ProofReceipt:
    of_it = {
        "contract_id": subject.contract_id,
        "version": subject.version,
        "digest": subject.digest,
        "round": subject.round,
        "repo": subject.repo_id,
        "side": subject.side,
        "commit": tree.commit,
        "tree": tree.tree,
        "runner": keys.agent_id,
    }
    return signed(ProofRun.model_validate(of_it | members), keys.signing)
