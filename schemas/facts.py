"""Contract facts: what a contract is made of, and what nodes exchange (design §7).

Each fact has one author and a key; merging two nodes is the union of their facts with one
winner per key. `stamp` is microseconds since 1970 of the author's hybrid logical clock; `digest`
is the SHA-256, hex, of the content's canonical JSON (RFC 8785).

Plain dataclasses: a node makes several for each write, and pydantic checks them where they come
in from outside, by the limits of what agents may write: what is merged is shown to agents.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from schemas.base import LIST_MAX, Identifier, JsonObject, Ordinal, Stamp, Text
from schemas.contract import AgreementPolicy, ResponseAction, VerificationResult

Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Path = Annotated[str, StringConstraints(max_length=4_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFact:
    """A version of the content, and who is bound by it."""

    version: Ordinal
    digest: Digest
    stamp: Stamp
    content: JsonObject
    repo_id: Identifier
    agent_id: Identifier
    parties: tuple[Identifier, ...]
    """repo_ids that must agree and implement, frozen for this version."""
    policy: AgreementPolicy
    parent: Digest | None = None
    """Digest of the version that this one replaces; None for the first."""
    note: Text | None = None
    kind: Literal["version"] = "version"

    @property
    def place(self) -> str:
        """What the other facts of a version are about: none of them names the parties."""
        return f"{self.version}/{self.digest}"

    @property
    def key(self) -> str:
        """One for each set of parties: who may say what follows from them, so that a version never
        takes the place of one that binds others."""
        parties = ",".join(sorted({one.encode().hex() for one in self.parties}))
        return f"{self.place}/{sha256(parties.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFact:
    """What a repo says of a version."""

    version: Ordinal
    digest: Digest
    stamp: Stamp
    repo_id: Identifier
    agent_id: Identifier
    action: ResponseAction
    comment: Text | None = None
    suggested_change: Any = None
    kind: Literal["response"] = "response"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}/{self.repo_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFact:
    """How often the implementation of a version has begun anew after a failed verification."""

    version: Ordinal
    digest: Digest
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
    digest: Digest
    stamp: Stamp
    repo_id: Identifier
    agent_id: Identifier
    round: Ordinal
    status: Literal["in_progress", "complete", "needs_revision"]
    plan: Text | None = None
    files: Annotated[tuple[Path, ...], Field(max_length=LIST_MAX)] = ()
    notes: Text | None = None
    test_endpoint: Text | None = None
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
    digest: Digest
    stamp: Stamp
    repo_id: Identifier
    agent_id: Identifier
    round: Ordinal
    result: VerificationResult
    notes: Text | None = None
    details: JsonObject | None = None
    kind: Literal["verification"] = "verification"

    @property
    def key(self) -> str:
        return f"{self.version}/{self.digest}/{self.repo_id}/{self.round}/{self.result}"


Fact = Annotated[
    VersionFact | ResponseFact | RoundFact | ImplementationFact | VerificationFact,
    Field(discriminator="kind"),
]
