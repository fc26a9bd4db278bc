"""Contract facts: what a contract is made of, and what nodes exchange (design §7).

Each fact has one author and a key; merging two nodes is the union of their facts with one
winner per key. `stamp` is microseconds since 1970 of the author's hybrid logical clock; `digest`
is the SHA-256, hex, of the content's canonical JSON (RFC 8785).

They are plain dataclasses, as a node creates several for each write. Facts of peers are checked by
pydantic with the limits for agents, because merged facts are shown to agents.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, StringConstraints, TypeAdapter

from schemas.base import LIST_MAX, Commit, Identifier, JsonObject, Ordinal, Stamp, Text
from schemas.contract import (
    AgreementPolicy,
    ResponseAction,
    VerificationResult,
)
from schemas.dialect import DialectName
from schemas.verification import PartyRole, VerificationPolicy

Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Path = Annotated[str, StringConstraints(max_length=4_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPlace:
    """The content that a fact is about."""

    version: Ordinal
    digest: Digest
    stamp: Stamp

    @property
    def place(self) -> str:
        """The same for all facts about one content, whatever parties its versions bind."""
        return f"{self.version}/{self.digest}"


FEW_PARTIES = 16
"""Larger sets of parties are not kept: a version may name as many as a body holds."""


def _hash(parties: Iterable[str], terms: str = "") -> str:
    """The same for the same parties in any order. `terms` is what else binds them."""
    text = ",".join(sorted({party.encode().hex() for party in parties})) + terms
    return sha256(text.encode()).hexdigest()


# Versions of one project often have the same parties, and many projects come in by turns.
_kept_hash = lru_cache(maxsize=256)(_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFact(VersionPlace):
    """A version of the content, and who is bound by it."""

    content: JsonObject
    repo_id: Identifier
    agent_id: Identifier
    parties: tuple[Identifier, ...]
    """repo_ids that must agree and implement, frozen for this version."""
    policy: AgreementPolicy
    parent: Digest | None = None
    """Digest of the version that this one replaces; None for the first."""
    note: Text | None = None
    verification: VerificationPolicy | None = None
    """What verifies the version; None is `word`."""
    dialect: DialectName | None = None
    """What the content was declared to be written in; None where it is recognised."""
    roles: dict[Identifier, PartyRole] | None = None
    """The role of each party; None where they follow from the repos' roles."""
    kind: Literal["version"] = "version"

    @property
    def key(self) -> str:
        """A key for each set of parties and of terms: they decide who may write facts of the
        version, and what verifies it, so a version never replaces one with others."""
        if self.verification is not None or self.roles is not None:
            roles = [f"{repo.encode().hex()}:{role}" for repo, role in (self.roles or {}).items()]
            terms = " ".join([";", str(self.verification), *sorted(roles)])
            return f"{self.place}/{_hash(self.parties, terms)}"
        few = len(self.parties) <= FEW_PARTIES
        return f"{self.place}/{(_kept_hash if few else _hash)(self.parties)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFact(VersionPlace):
    """A repo's response to a version."""

    repo_id: Identifier
    agent_id: Identifier
    action: ResponseAction
    comment: Text | None = None
    suggested_change: Any = None
    kind: Literal["response"] = "response"

    @property
    def key(self) -> str:
        return f"{self.place}/{self.repo_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFact(VersionPlace):
    """How often the implementation of a version has restarted after a failed verification."""

    number: Ordinal
    kind: Literal["round"] = "round"

    @property
    def key(self) -> str:
        return self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplementationFact(VersionPlace):
    """A repo's work on a version, in a round."""

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
    commit: Commit | None = None
    """What was declared complete."""
    kind: Literal["implementation"] = "implementation"

    @property
    def key(self) -> str:
        return f"{self.place}/{self.repo_id}/{self.round}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationFact(VersionPlace):
    """A repo's result of verifying a round. There is one for each result, so that a later `partial`
    does not undo a `success` (design §5: partial is recorded and changes no status)."""

    repo_id: Identifier
    agent_id: Identifier
    round: Ordinal
    result: VerificationResult
    notes: Text | None = None
    details: JsonObject | None = None
    kind: Literal["verification"] = "verification"

    @property
    def key(self) -> str:
        return f"{self.place}/{self.repo_id}/{self.round}/{self.result}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFact(VersionPlace):
    """A runner's receipt of a round (schemas.receipt.ProofReceipt). `agent_id` is the runner.

    There is one for each command that a runner ran on a commit, the latest run of it: so a failure
    is hidden by no other command that passes. `stamp` is when a node first recorded it.
    """

    repo_id: Identifier
    agent_id: Identifier
    round: Ordinal
    receipt: JsonObject
    """As it was signed."""
    kind: Literal["receipt"] = "receipt"

    @property
    def key(self) -> str:
        ran = [self.receipt.get(name) for name in _RAN]
        text = sha256(orjson.dumps(ran)).hexdigest()[:32]
        return f"{self.place}/{self.repo_id}/{self.round}/{text}"


_RAN = ("side", "commit", "tool", "command", "publicKey")
"""The members of a receipt that tell by whom what was run on what."""

Fact = Annotated[
    VersionFact | ResponseFact | RoundFact | ImplementationFact | VerificationFact | ReceiptFact,
    Field(discriminator="kind"),
]

FACT: TypeAdapter[Fact] = TypeAdapter(Fact)

_NAMES: dict[type, tuple[str, ...]] = {
    kind: tuple(member.name for member in fields(kind))
    for kind in (
        VersionFact,
        ResponseFact,
        RoundFact,
        ImplementationFact,
        VerificationFact,
        ReceiptFact,
    )
}
_VALUES = {kind: attrgetter(*names) for kind, names in _NAMES.items()}
_ADDED: dict[type, tuple[str, ...]] = {
    VersionFact: ("verification", "dialect", "roles"),
    ImplementationFact: ("commit",),
}
"""Members that earlier releases don't know. Where they say nothing they are absent, so that a fact
without them keeps its digest and its signature, and every release takes it."""


def members_of(fact: Fact) -> dict[str, Any]:
    """The members of a fact, of which its canonical JSON is made, without copies of the values."""
    kind = type(fact)
    members = dict(zip(_NAMES[kind], _VALUES[kind](fact), strict=True))
    for name in _ADDED.get(kind, ()):
        if members[name] is None:
            del members[name]
    return members


def json_of(fact: Fact) -> bytes:
    """A fact as JSON, as it is stored and sent."""
    return orjson.dumps(members_of(fact))
