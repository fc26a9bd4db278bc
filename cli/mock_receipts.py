"""The receipts that `cacp mock check` leaves with a runner's keys: a recording of a consumer's
tests proves its side of each contract that they use."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.client import CallRefused, NodeUnreachable
from cli.receipts import ProvenSide, checkout, record, runner_keys, sign_probe, subject_of, tell
from cli.terminal import notice

if TYPE_CHECKING:
    from proof.agreed import AgreedContract
    from proof.git_tree import GitTree
    from proof.probe_outcome import ProbeOutcome
    from proof.recording_check import RecordingCheck
    from proof.runner_key import RunnerKeys
    from proof.subject import ProofSubject

Json = dict[str, Any]


class RecordingProof:
    """Whose tests were recorded, in this checkout, and the runner that vouches for it."""

    def __init__(self, key_file: Path, repo: str | None, url: str) -> None:
        """Ends the command without usable keys or a checkout."""
        self.keys: RunnerKeys = runner_keys(key_file)
        self.tree: GitTree = checkout()
        self._repo, self._url = repo, url

    def receipts(self, checked: "RecordingCheck", recording: Path) -> tuple[list[Json], bool]:
        """What became of the receipt of each contract that the recording has requests to, and
        whether each that the repo consumes has one."""
        from proof.git_tree import GitProblem
        from proof.subject import NotItsSide, NotVerifiable

        made: list[Json] = []
        is_whole = True
        for contract, outcome in checked.outcomes:
            if not outcome.cases:
                continue
            become: Json = {"contractId": contract.contract_id}
            try:
                made.append(become | self._receipt(contract, outcome, checked, recording))
            except (
                NotVerifiable, GitProblem, CallRefused, NodeUnreachable, ValueError,
            ) as problem:  # fmt: skip
                is_whole &= isinstance(problem, NotItsSide)
                notice(f"{contract.title}: no receipt is made: {problem}")
                made.append(become | {"status": "not_made", "problem": str(problem)})
        return made, is_whole and any(each["status"] != "not_made" for each in made)

    def _receipt(
        self,
        contract: "AgreedContract",
        outcome: "ProbeOutcome",
        checked: "RecordingCheck",
        recording: Path,
    ) -> Json:
        """Raises NotVerifiable, GitProblem, and as `subject_of`."""
        wanted = ProvenSide(contract.contract_id, self._repo, "consumer")
        asked = subject_of(self.keys, self._url, wanted, self.tree)
        self._check_recording(asked, contract, outcome, checked)
        command = f"cacp mock check {recording.name}"
        receipt = sign_probe(asked, self.tree, self.keys, outcome, command)
        recorded = record(self.keys, self._url, asked.project_id, receipt, self.tree)
        tell(receipt, recorded)
        return {"receipt": receipt.wire(), **recorded}

    def _check_recording(
        self,
        asked: "ProofSubject",
        contract: "AgreedContract",
        outcome: "ProbeOutcome",
        checked: "RecordingCheck",
    ) -> None:
        """Raises NotVerifiable for a recording that can't be of this commit, content and round."""
        from proof.subject import NotVerifiable

        again = "run the tests against `cacp mock` again, recording into a new file"
        if outcome.result == "not_run":
            raise NotVerifiable(" ".join(outcome.unproven))
        if contract.digest in checked.stale:
            raise NotVerifiable(f"the mock answered by other content than is agreed now: {again}")
        began = datetime.fromisoformat(outcome.started_at)
        commit = datetime.fromtimestamp(self.tree.committed_at(), UTC)
        if began < commit:
            raise NotVerifiable(
                f"its first request is of {began:%Y-%m-%d %H:%M:%S} UTC, and commit "
                f"{asked.declared or self.tree.commit:.12} of {commit:%Y-%m-%d %H:%M:%S}: {again}"
            )
        for known in checked.completions[contract.digest]:
            if known is None:
                _check_clock(asked, began, again)
            elif known.get(asked.contract_id, {}).get(asked.repo_id) != asked.completed_at:
                raise NotVerifiable(
                    f"it has exchanges of a mock that was started before {asked.repo} declared its "
                    f"work complete in round {asked.round}, at {asked.completed_at}: start it and "
                    f"{again}"
                )


def _check_clock(asked: "ProofSubject", began: datetime, again: str) -> None:
    """Raises NotVerifiable for a recording of before the completion. Its mock has asked no node, so
    that goes by the clocks of this machine and of the node."""
    from proof.subject import NotVerifiable

    if asked.completed_at is None or began >= datetime.fromisoformat(asked.completed_at):
        return
    raise NotVerifiable(
        f"its first request is of {began.isoformat()} by this machine's clock, and {asked.repo} "
        f"declared its work complete at {asked.completed_at}: {again}, of `cacp mock PROJECT` if "
        "the clocks differ"
    )
