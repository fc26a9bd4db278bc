"""Contract facts: what a contract is made of, and what nodes exchange (design §6).

Each fact has one author and a key; merging two nodes is the union of their facts with one
winner per key. `stamp` is microseconds since 1970 of the author's hybrid logical clock; `digest`
is the SHA-256, hex, of the content's canonical JSON (RFC 8785).

Plain dataclasses: a node makes several for each write, and pydantic checks them where they come
in from outside.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from schemas.base import JsonObject, Ordinal, Stamp
from schemas.contract import AgreementPolicy, ResponseAction, VerificationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFact:
    """A version of the content, and who is bound by it."""

    version: Ordinal
    digest: str
    stamp: Stamp
    content: JsonObject
    repo_id: str
    agent_id: str
    parties: tuple[str, ...]
    """repo_ids that must agree and implement, frozen for this version."""
    policy: AgreementPolicy
    parent: str | None = None
    """Digest of the version that this one replaces; None for the first."""
    note: str | None = None
    kind: Literal["version"] = "version"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFact:
    """What a repo says of a version."""

    version: Ordinal
    digest: str
    stamp: Stamp
    repo_id: str
    agent_id: str
    action: ResponseAction
    comment: str | None = None
    suggested_change: Any = None
    kind: Literal["response"] = "response"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}/{self.repo_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFact:
    """How often the implementation of a version has begun anew after a failed verification."""

    version: Ordinal
    digest: str
    stamp: Stamp
    number: Ordinal
    kind: Literal["round"] = "round"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplementationFact:
    """A repo's work on a version, in a round."""

    version: Ordinal
    digest: str
    stamp: Stamp
    repo_id: str
    agent_id: str
    round: Ordinal
    status: Literal["in_progress", "complete", "needs_revision"]
    plan: str | None = None
    files: tuple[str, ...] = ()
    notes: str | None = None
    test_endpoint: str | None = None
    started_at: Stamp | None = None
    completed_at: Stamp | None = None
    kind: Literal["implementation"] = "implementation"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}/{self.repo_id}/{self.round}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationFact:
    """What a repo found when it verified a round. One per result, so that a later `partial`
    does not undo a `success` (design §5: partial is recorded and moves nothing)."""

    version: Ordinal
    digest: str
    stamp: Stamp
    repo_id: str
    agent_id: str
    round: Ordinal
    result: VerificationResult
    notes: str | None = None
    details: JsonObject | None = None
    kind: Literal["verification"] = "verification"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}/{self.repo_id}/{self.round}/{self.result}"


Fact = Annotated[
    VersionFact | ResponseFact | RoundFact | ImplementationFact | VerificationFact,
    Field(discriminator="kind"),
]
