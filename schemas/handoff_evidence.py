"""Evidence that tests pass, in handoffs, and what came of checking it (design-next N2)."""

import shlex
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from schemas.acp import ACPParams, ACPStrict, Uuid7
from schemas.acp_payloads import Sha256
from schemas.base import Commit, Identifier, Result, Text, Timestamp
from schemas.plain import clean
from schemas.receipt import RunnerSignature

COMMAND_MAX = 2_000
COMMANDS_MAX = 20
RECEIPTS_MAX = 20


def _check_command(command: str) -> str:
    """Raises ValueError for a command that can't be shown whole, or is none."""
    if clean(command) != command or "\n" in command or "\t" in command:
        raise ValueError(
            "must be one line without control and invisible characters: whoever runs it must see "
            "all of it"
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"is no command of a shell: {error}") from None
    if not words or not words[0]:
        raise ValueError("names no program")
    return command


EvidenceCommand = Annotated[
    str, StringConstraints(min_length=1, max_length=COMMAND_MAX), AfterValidator(_check_command)
]
"""A command as it is typed. It is run without a shell: `sh -c '…'` has one."""
ExitCode = Annotated[int, Field(ge=0, le=255)]


class HandoffCommandEvidence(ACPStrict):
    """A command that was run at a commit, in the folder of the repository's top."""

    command: EvidenceCommand
    commit: Commit
    exit_code: ExitCode
    output_digest: Sha256 | None = None
    """SHA-256, hex, of all that it printed, errors included. It is shown and decides nothing:
    outputs have times in them."""


class HandoffReceiptEvidence(ACPStrict):
    """A runner's receipt, as `cacp/receipt/list` of its contract has it."""

    contract_id: Identifier
    signature: RunnerSignature


class HandoffTestEvidence(ACPStrict):
    """What shows that tests pass: commands, receipts, or both."""

    commands: (
        Annotated[list[HandoffCommandEvidence], Field(min_length=1, max_length=COMMANDS_MAX)] | None
    ) = None
    receipts: (
        Annotated[list[HandoffReceiptEvidence], Field(min_length=1, max_length=RECEIPTS_MAX)] | None
    ) = None

    @model_validator(mode="after")
    def _names_any(self) -> Self:
        if not self.commands and not self.receipts:
            raise ValueError("names no command and no receipt; leave it out where there is none")
        return self


def check_evidence(test_status: str | None, evidence: HandoffTestEvidence | None) -> None:
    """Raises ValueError for evidence that contradicts the status that it is for."""
    if evidence is None:
        return
    if test_status != "passing":
        raise ValueError(
            f"test_evidence: is for test_status 'passing', and it is {test_status or 'not given'}"
        )
    for place, run in enumerate(evidence.commands or ()):
        if run.exit_code != 0:
            raise ValueError(
                f"test_evidence.commands.{place}.exit_code: is {run.exit_code}, so the command "
                "failed, and test_status says 'passing'; expected 0, or test_status 'failing' "
                "without evidence"
            )


# --- the check ----------------------------------------------------------------------------------


class HandoffCommandRun(ACPStrict):
    """How a command of a package ended at its receiver's. Without `exit_code` it could not be
    tried, and `detail` says why."""

    exit_code: ExitCode | None = None
    output_digest: Sha256 | None = None
    detail: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None


class HandoffCheckParams(ACPParams):
    handoff_id: Uuid7
    package_hash: Sha256
    """The digest of the package that was checked."""
    commands: Annotated[list[HandoffCommandRun], Field(min_length=1, max_length=COMMANDS_MAX)]
    """How each command of the package ended, in the package's order."""


class HandoffCheckResult(Result):
    """`holds`: each command was run and ended with 0."""

    handoff_id: Identifier
    holds: bool
    checked_at: Timestamp


EvidenceStanding = Literal["word", "claimed", "failed", "checked", "proven"]
"""`word`: no evidence; `claimed`: some of it is unchecked here, or proves nothing; `failed`: a
command failed at its check; `checked`: every command passed at its check, and every receipt proves;
`proven`: receipts alone, and each proves."""

STANDINGS: dict[EvidenceStanding, str] = {
    "word": "word of its sender, without evidence",
    "claimed": "word of its sender; not all of the evidence has been checked here, or it proves "
    "nothing",
    "failed": "not so: a command failed when it was run here",
    "checked": "checked here: every command passed",
    "proven": "proven by receipts",
}
"""What `test_status: passing` is worth, as people and models read it."""


class CheckedCommand(Result):
    """A command of a package. `same_output`: whether it printed the same as at its sender's."""

    command: Text
    commit: Identifier
    outcome: Literal["unchecked", "held", "failed", "not_run"]
    exit_code: int | None = None
    same_output: bool | None = None
    detail: Text | None = None


class NamedReceipt(Result):
    """A receipt that a package names, as this node knows it: `unproven` proves nothing now."""

    contract_id: Identifier
    signature: Identifier
    outcome: Literal["proves", "unproven", "unknown"]
    contract: Identifier | None = None
    """The contract's name."""
    detail: Text


class HandoffEvidence(Result):
    """What this node knows of the evidence of a package whose tests are said to pass. `required`:
    the caller can accept it only when its evidence holds (CACP_HANDOFF_EVIDENCE); `problem` is why
    it does not."""

    standing: EvidenceStanding
    required: bool
    problem: Text | None = None
    commands: list[CheckedCommand]
    receipts: list[NamedReceipt]
    checked_by: Identifier | None = None
    checked_at: Timestamp | None = None
