"""Receipts: what a run of a probe, a mock or a test command leaves, signed by its runner (N2)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from schemas.base import SAFE_INTEGER, Commit, Count, Identifier, Model, Ordinal, Text, Timestamp
from schemas.facts import Digest

ReceiptOutcome = Literal[
    "passed", "regression", "inherited_failure", "missing_capability", "unclassified"
]
"""`regression`: it failed, and not at the base commit. `inherited_failure`: it failed there too.
`missing_capability`: it could not be run here. `unclassified`: it failed, and nothing more is
known."""
ReceiptSide = Literal["provider", "consumer"]
PublicKey = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{43}=$")]
"""An Ed25519 public key (RFC 8032), URL-safe base64."""
RunnerSignature = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{86}==$")]


class ProofRun(Model):
    """What was run on what, and how it ended: a receipt before its signature.

    The digest is that of the contract's content, the commit and the tree are git's. `repo` is a
    repo_id. `runner` is the agent id of the runner's key. `duration` is in milliseconds. Times are
    by the runner's clock.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        strict=True,
        frozen=True,
    )

    contract_id: Identifier
    version: Ordinal
    digest: Digest
    round: Ordinal
    repo: Identifier
    side: ReceiptSide
    commit: Commit
    tree: Commit
    dirty: bool
    """Whether the working tree had changes that the commit lacks."""
    base: Commit | None = None
    """The commit at which a failed command was run again."""
    tool: Identifier
    target: Literal["mock"] | None = None
    """What answered, where it was not the provider's program: of a provider it proves nothing."""
    seed: Count | None = None
    cases: Count | None = None
    command: Text | None = None
    exit_code: Annotated[int, Field(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]
    outcome: ReceiptOutcome
    output_digest: Digest
    started_at: Timestamp
    duration: Count
    runner: Identifier

    def body(self) -> dict[str, Any]:
        """The members that are signed, as JSON: all but the key and the signature. Absent members
        are left out."""
        return self.model_dump(
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude={"public_key", "signature"},
        )


class ProofReceipt(ProofRun):
    """A run, signed: Ed25519 over the canonical JSON (RFC 8785) of all members before its own."""

    public_key: PublicKey
    signature: RunnerSignature

    def wire(self) -> dict[str, Any]:
        """The whole receipt as JSON."""
        return self.body() | {"publicKey": self.public_key, "signature": self.signature}
