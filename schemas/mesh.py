"""What mesh nodes say to each other beside the specification (design §6, §7)."""

from typing import Annotated, Literal

from pydantic import FailFast, Field, StringConstraints

from schemas.base import (
    Count,
    Endpoint,
    Identifier,
    JsonObject,
    Params,
    Result,
    Stamp,
    Strings,
    Text,
    WireObject,
)
from schemas.contract import AgreementPolicy
from schemas.facts import Fact
from schemas.verification import VerificationPolicy

MESH_VERSION = 1
"""Peers whose card says so in `extensions.cacp.mesh` know facts, signatures and digests."""

Hex = Annotated[str, StringConstraints(pattern="^[0-9a-f]{16,128}$")]
Base64 = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Path = Annotated[str, StringConstraints(max_length=1_400)]
Prefix = Annotated[str, StringConstraints(pattern="^[0-9a-f]{0,3}$")]
EntityKind = Literal["project", "contract", "receipt", "context", "file", "file_request"]
FIRST_KINDS: list[str] = ["project", "contract", "context"]
"""What a peer knows that does not say which kinds it knows: releases without files."""


# --- the handshake ------------------------------------------------------------------------------


class Introduction(Params):
    """Who one side of a handshake is. The nonce is 32 random bytes, hex."""

    agent_id: Identifier
    endpoint: Endpoint
    repo_name: Identifier
    public_key: Base64
    nonce: Hex


class Hello(Params):
    """The first message: who calls, and which secret it knows, without telling it."""

    introduction: Introduction
    secret_id: Identifier
    """The id of an invite, or the tag of the mesh token under this nonce."""


class Welcome(Result):
    """The answer to Hello: who answers, with proof of the secret and of its own key."""

    introduction: Introduction
    proof: Hex
    signature: Base64


class Confirm(Params):
    """The last message: the caller's proof. `nonce` is the answering side's."""

    nonce: Hex
    proof: Hex
    signature: Base64


class Confirmed(Result):
    status: Literal["registered"]
    agent_id: Identifier


# --- authorship ---------------------------------------------------------------------------------


class Signature(WireObject):
    """A node's word for a statement: Ed25519 over its canonical JSON."""

    node: Identifier
    """The agent id of the node."""
    value: Base64
    path: Path = ""
    """From the statement to what was signed, if that was a batch (`peers.signing`)."""
    unkeyed: bool = False
    """The author is a foreign peer, which has no key: the node only passes it on."""


class SignedFact(WireObject):
    fact: Fact
    signature: Signature


class Claim(WireObject):
    """An agent's claim on a repo. Times are stamps."""

    agent_id: Identifier
    agent_endpoint: Endpoint | None = None
    claimed_at: Stamp
    renewed_at: Stamp
    signature: Signature


class RepoRegister(WireObject):
    """A repo of a project and its claims, the one that holds first. What it is gives way, when it
    comes without a signature, to what a node has signed that may say it."""

    repo_id: Identifier
    name: Identifier
    role: Identifier
    language: Identifier
    relevant_paths: Strings
    url: Text | None
    stamp: Stamp
    signature: Signature | None = None
    """Of what the repo is, without its claims."""
    claims: Annotated[list[Claim], FailFast()] = []
    """The first that is wrong is named: each of many might be so in thousands of ways."""


class ProjectRegister(WireObject):
    """A project's header and repos with their stamps. Nobody's word is taken for a header without a
    signature where a member of the project has signed one."""

    name: Identifier
    objective: Text
    status: Literal["planning", "implementing", "integrating", "complete"]
    agreement_policy: AgreementPolicy
    verification_policy: VerificationPolicy = "word"
    """Absent where it is `word`, as from releases that know no other."""
    created_at: Stamp
    stamp: Stamp
    signature: Signature | None = None
    """Of the header, without the repos."""
    repos: Annotated[list[RepoRegister], FailFast()]


# --- comparing ----------------------------------------------------------------------------------


class Entity(WireObject):
    """What is synchronised as one."""

    entity: EntityKind
    project_id: Identifier
    entity_id: Identifier


class DigestParams(Params):
    """`prefixes` of 0 to 3 hex digits: the places to tell the digests of."""

    source_agent: Annotated[Identifier, Field(alias="source_agent")]
    prefixes: Annotated[list[Prefix], Field(min_length=1, max_length=256)]
    kinds: Annotated[list[Identifier], Field(max_length=100)] = FIRST_KINDS
    """The kinds of entities that the caller knows: it is sent no others."""


class DigestLeaf(WireObject):
    entity: EntityKind
    project_id: Identifier
    entity_id: Identifier
    digest: Hex


class DigestResult(Result):
    """`sums` by longer prefix for places of fewer than 3 digits, `leaves` for the others."""

    time: int
    """The node's own clock, uncorrected: microseconds since 1970."""
    behind: bool
    """Changes are not all counted yet, or the clocks not compared: ask again in a while."""
    sums: dict[str, Hex]
    leaves: list[DigestLeaf]


class PullParams(Params):
    source_agent: Annotated[Identifier, Field(alias="source_agent")]
    entities: Annotated[list[Entity], Field(min_length=1, max_length=500)]
    piece: Count | None = None
    """How many messages of the first entity the caller has from an answer before. Who gives it
    knows `nextPiece`."""


class SyncMessage(WireObject):
    """A call of a sync method as the node would send it."""

    method: Identifier
    params: JsonObject


class PullResult(Result):
    """`messages` for the first of the entities that were asked for; `rest` is how many are left.

    `next_piece` says that of the first of the rest so many messages were given, now and before.
    """

    messages: list[SyncMessage]
    rest: int
    next_piece: Count | None = None


class Undelivered(Result):
    """An entity that a peer has not taken, and why; after how many tries."""

    entity: EntityKind
    project_id: Identifier
    entity_id: Identifier
    reason: str
    tries: int


# --- bans ---------------------------------------------------------------------------------------


class Ban(WireObject):
    """A node's word that an agent is banned, or is so no more. `agent` is without its version."""

    agent: Identifier
    public_key: Base64 | None
    """The key that it signs with, where that was known: the ban is of its holder too."""
    banned: bool
    stamp: Stamp
    reason: Annotated[str, StringConstraints(max_length=300)]


class SignedBan(WireObject):
    ban: Ban
    signature: Signature


class BansParams(Params):
    """`known` is the digest of the last answer."""

    source_agent: Annotated[Identifier, Field(alias="source_agent")]
    known: Hex | None = None


class BansResult(Result):
    """What the node says and passes on; nothing when its digest is the one that is known."""

    digest: Hex
    bans: list[SignedBan]


# --- evidence -----------------------------------------------------------------------------------


EVIDENCE_MAX = 100
"""In one answer: who takes it checks two signatures for each, and other writes wait meanwhile."""


class EquivocationEvidence(WireObject):
    """Two things that one node has signed where it could honestly sign one. What each is, `kind`
    says, and `place` and `key` of what; anybody who has the node's key can check it."""

    kind: Identifier
    place: Identifier
    key: Text
    ours: JsonObject
    ours_signature: Signature
    theirs: JsonObject
    theirs_signature: Signature


class EvidenceParams(Params):
    """`after` is where the last answer ended; 0 asks from the beginning."""

    source_agent: Annotated[Identifier, Field(alias="source_agent")]
    after: Count = 0


class EvidenceResult(Result):
    """The next of what the node has found, a few megabytes at most, and where it ends."""

    evidence: Annotated[list[EquivocationEvidence], FailFast(), Field(max_length=EVIDENCE_MAX)]
    keys: dict[str, str] = {}
    """Public keys of the nodes that it is about: who hears of it may not have met them yet."""
    last: Count


# --- how it goes --------------------------------------------------------------------------------


class PeerState(Result):
    """How the exchange with a peer goes, as `GET /peers` tells it."""

    health: Literal["up", "down", "unknown"]
    backlog: int
    undelivered: int
    """Of these, entities that the peer answers but has not taken, or that can't be sent; they are
    tried again."""
    undelivered_entities: list[Undelivered] | None = None
    """The first 100 of them; absent when there is none."""
    mail: int
    """Messages, and receipts of messages, that wait for the peer."""
    lag_seconds: float
    last_contact: str | None = None
    last_error: str | None = None
    retries: int
    """Deliveries that failed since this node started."""
    digest_rounds: int
    compared_at: str | None = None
    """When this node last compared what it holds with a mesh node; absent before that."""
    is_equal: bool | None = None
    """Whether both held the same then."""
    differing: dict[str, int] | None = None
    """How many entities the peer held otherwise, or this node lacked, by kind; absent when there
    was none. They were fetched right after."""


class MeshVerdict(Result):
    """Whether the mesh nodes hold the same, as far as this node knows by comparing with each.

    `behind`: they did, and changes since then are on their way. `unknown`: some were never
    compared, or are down. `sentence` says it; `limits` name what is not part of it.
    """

    state: Literal["alone", "equal", "behind", "differs", "unknown"]
    sentence: str
    compared_at: str | None = None
    """The oldest of the last comparisons with the nodes that were compared."""
    limits: list[str]
