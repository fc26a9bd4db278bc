"""What foreign peers have changed in the whole objects that they show (design §8). Pure.

Foreign peers follow the specification's text. They know no facts, and send contracts whole. Of such
an object only what the peer itself changed counts: it is compared with what was last exchanged with
that peer, and each difference becomes a fact of the peer's own repo. What is known here already is
no difference, so nothing is echoed, and a stale object undoes nothing.

Repo ids in the objects are this node's: the caller maps the peer's ids first.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from schemas.base import JsonObject, stamp_of
from schemas.contract import (
    UNSETTLED,
    AgreementPolicy,
    ContractStatus,
    ResponseAction,
)
from schemas.facts import (
    Fact,
    ImplementationFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from schemas.sync import PeerContract, PeerImplementation
from schemas.verification import PartyRole, VerificationPolicy

Digest: TypeAlias = Callable[[JsonObject], str]
"""SHA-256 of the canonical JSON. Its errors for content without one are passed on."""

_Work: TypeAlias = tuple[str, str, tuple[str, ...], str, str]

BUILT: tuple[ContractStatus, ...] = ("implemented", "verified")


HEADER = ("name", "objective", "status")
"""Members of a project that a peer may change."""

SEEN_MAX = 64
"""Fingerprints to remember: an older echo is taken for a change."""


class NotTheirs(Exception):
    """A contract is unknown here, and another repo than the peer's proposed it."""


# --- what a peer may have changed ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposed:
    """A contract that is unknown here."""

    version: int
    content: JsonObject
    digest: str


@dataclass(frozen=True, slots=True)
class Updated:
    """A version above the one here, or a different content for the same version: a race."""

    version: int
    content: JsonObject
    digest: str
    parent: str | None
    """Digest of the version that it replaces; None for that which the current version here
    replaces."""


@dataclass(frozen=True, slots=True)
class Outrun:
    """A version of the peer's own below the one here, made before it got that one: it has lost."""

    version: int
    content: JsonObject
    digest: str
    parent: str | None
    """Digest of the version that it replaces; None if unknown."""


@dataclass(frozen=True, slots=True)
class Responded:
    action: ResponseAction


@dataclass(frozen=True, slots=True)
class Implemented:
    """The work of the peer's own repo. Times are the peer's, in microseconds since 1970."""

    status: Literal["in_progress", "complete", "needs_revision"]
    plan: str | None
    files: tuple[str, ...]
    notes: str | None
    test_endpoint: str | None
    started_at: int | None
    completed_at: int | None


@dataclass(frozen=True, slots=True)
class Verified:
    result: Literal["success", "failure"]


Difference = Proposed | Updated | Outrun | Responded | Implemented | Verified


# --- what was exchanged before ------------------------------------------------------------------


class ContractExchange(BaseModel):
    """What was exchanged with one peer about one contract, kept between messages.

    `last` went either way, and `seen` has the fingerprints of what did lately. `pending` is on its
    way to the peer, or was and got no response. `heard` is the newest (version, time) by the peer's
    own clock. The peer's times are never compared with this node's: some peers send local time as
    if it were UTC.
    """

    model_config = ConfigDict(frozen=True)

    last: PeerContract | None = None
    seen: tuple[str, ...] = ()
    heard: tuple[int, int] | None = None
    pending: PeerContract | None = None

    @classmethod
    def of(cls, kept: str | None) -> "ContractExchange":
        """From JSON as it is stored; None if nothing was exchanged yet."""
        return cls() if kept is None else cls.model_validate_json(kept)

    def before_sending(self, local: PeerContract) -> "ContractExchange":
        """While `local` is in transit: the peer may take and change it before it responds."""
        return self.model_copy(update={"pending": local})

    def after_sending(self, local: PeerContract) -> "ContractExchange":
        """Once the peer has confirmed `local`; a `skipped` or an `error` confirms nothing."""
        taken = {"last": local, "seen": self._seen_with(local), "pending": None}
        return self.model_copy(update=taken)

    def after_crossing(self, local: PeerContract) -> "ContractExchange":
        """Once the peer has confirmed `local` and sent its own change in that time, which stays
        `last`."""
        return self.model_copy(update={"seen": self._seen_with(local), "pending": None})

    def after_hearing(self, shown: PeerContract) -> "ContractExchange":
        """Once the differences of `shown` are applied here."""
        if self.is_stale(shown):
            return self
        at = _time_of(shown)
        is_own = self.last is not None and at == _time_of(self.last)
        behind = self.last is not None and shown.version < self.last.version
        return ContractExchange(
            last=self.last if behind else shown,
            seen=self._seen_with(shown),
            heard=self.heard if at is None or is_own else (shown.version, at),
            pending=self.pending,
        )

    def base_of(self, shown: PeerContract, digest: Digest) -> PeerContract | None:
        """What the peer changed to get to `shown`: what was exchanged last, or what is in transit
        to the peer if it has gone back from that to what was exchanged last."""
        last, pending = self.last, self.pending
        if last is None or pending is None or not says_same(shown, last, digest):
            return last
        goes_on = (pending.version, digest(pending.content)) == (last.version, digest(last.content))
        return pending if goes_on else last

    def is_stale(self, shown: PeerContract) -> bool:
        """Whether it was exchanged before, or the peer has shown something newer since: a higher
        version, or the same at a later time (CACP 2.0, Conflict Resolution)."""
        if self.has_seen(shown):
            return True
        at = _time_of(shown)
        return at is not None and self.heard is not None and (shown.version, at) < self.heard

    def has_seen(self, contract: PeerContract) -> bool:
        """Whether exactly this, with its time, was exchanged before."""
        return _fingerprint(contract) in self.seen

    def _seen_with(self, contract: PeerContract) -> tuple[str, ...]:
        new = _fingerprint(contract)
        return (*(old for old in self.seen if old != new), new)[-SEEN_MAX:]


def _time_of(contract: PeerContract) -> int | None:
    return stamp_of(contract.updated_at) if contract.updated_at else None


def _fingerprint(contract: PeerContract) -> str:
    """32 hex digits over the state of the contract and its time."""
    works = sorted((work.repo_id, _work_of(work)) for work in contract.implementations)
    state = [contract.version, contract.status, contract.content, works, _time_of(contract)]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:32]


def _work_of(work: PeerImplementation | None) -> _Work:
    """What counts of an entry: "" for an absent text, and no times, which peers change."""
    if work is None:
        return ("pending", "", (), "", "")
    files = tuple(work.files or ())
    return (work.status, work.plan or "", files, work.notes or "", work.test_endpoint or "")


def says_same(left: PeerContract, right: PeerContract, digest: Digest) -> bool:
    """Whether two objects show the same state of a contract, at whatever time."""
    return _state_of(left, digest) == _state_of(right, digest)


def differing(local: PeerContract, shown: PeerContract, digest: Digest) -> str | None:
    """64 hex digits over both states of a contract; None if they are the same, or the peer's is of
    a later version."""
    states = [_state_of(local, digest), _state_of(shown, digest)]
    if states[0] == states[1] or shown.version > local.version:
        return None
    return hashlib.sha256(json.dumps(states, sort_keys=True).encode()).hexdigest()


def _state_of(contract: PeerContract, digest: Digest) -> tuple[object, ...]:
    works = {
        work.repo_id: _work_of(work)
        for work in contract.implementations
        if work.status != "pending"
    }
    return contract.version, contract.status, digest(contract.content), works


# --- what differs -------------------------------------------------------------------------------


def contract_differences(
    local: PeerContract | None,
    exchange: ContractExchange,
    shown: PeerContract,
    repo_id: str,
    digest: Digest,
) -> list[Difference]:
    """What the peer that holds `repo_id` has changed in the contract that it shows.

    `local` is the contract as this node would send it; None if it is unknown here. Raises
    NotTheirs.
    """
    if local is None and shown.proposed_by not in (None, repo_id):
        raise NotTheirs(
            f"Contract {shown.contract_id} is unknown here and not yours: "
            f"repo {shown.proposed_by} proposed it and has to send it"
        )
    content = digest(shown.content)
    if local is None:
        first = Proposed(shown.version, shown.content, content)
        return [first, *_first_steps(shown, repo_id)]
    if exchange.is_stale(shown):
        return []
    place = (shown.version, content)
    last = exchange.base_of(shown, digest)
    known = last if last and (last.version, digest(last.content)) == place else None
    if shown.version < local.version:
        if known or shown.proposed_by not in (None, repo_id):
            return []
        grew_from = _parent(local, last, shown, digest)
        return [Outrun(shown.version, shown.content, content, grew_from)]
    if (local.version, digest(local.content)) == place:
        return _step_differences(local, known, shown, repo_id)
    if known:
        return []
    parent = _parent(local, last, shown, digest)
    update = Updated(shown.version, shown.content, content, parent)
    return [update, *_first_steps(shown, repo_id)]


def _first_steps(shown: PeerContract, repo_id: str) -> list[Difference]:
    """The steps that the peer has taken on a version that is new here."""
    asked: list[Difference] = [Responded("request_change")] if shown.status == "negotiating" else []
    return [*asked, *_work_differences(None, None, shown, repo_id)]


def _parent(
    local: PeerContract, last: PeerContract | None, shown: PeerContract, digest: Digest
) -> str | None:
    """The digest of the version that an update replaces: the last that the peer knew."""
    for before in (last, local):
        if before is not None and before.version < shown.version:
            return digest(before.content)
    return None


def _step_differences(
    local: PeerContract, last: PeerContract | None, shown: PeerContract, repo_id: str
) -> list[Difference]:
    """The steps that the peer has taken on the version that both have."""
    steps: list[Difference] = []
    before: ContractStatus = last.status if last else "proposed"
    now = shown.status
    # A status that this node has too may be another repo's doing, which the peer only repeats.
    has_moved = now not in (before, local.status)
    response = response_behind(before, now) if has_moved else None
    if response == "agree" and local.status not in UNSETTLED:
        response = None
    if response is not None:
        steps.append(Responded(response))
    if _is_round_behind(local, last):
        return steps
    if _fails_round(local, last, shown, repo_id):
        # The failure opens a new round, in which every repo's work needs revision anyway.
        return [*steps, Verified("failure")]
    steps += _work_differences(local, last, shown, repo_id)
    if has_moved and now == "verified":
        steps.append(Verified("success"))
    return steps


def response_behind(before: ContractStatus, now: ContractStatus) -> ResponseAction | None:
    """The response that moves a version from one status to another: the reverse of
    `server.domain.contract.status_of`. None when no response does."""
    if now == "negotiating":
        return "request_change"
    if now == "proposed":
        return "reject"
    return "agree" if before in UNSETTLED else None


def _fails_round(
    local: PeerContract, last: PeerContract | None, shown: PeerContract, repo_id: str
) -> bool:
    """Whether the peer has verified what was built, and found a failure."""
    if shown.status != "agreed" or local.status == "agreed":
        return False
    revised = _to_revise(shown) - _to_revise(last)
    if last is not None and last.status in BUILT:
        return bool(revised)
    # The peer took this node's contract, in which all is built, but its response has not arrived.
    # Revising only its own work is not a failed verification.
    return local.status in BUILT and bool(revised - {repo_id})


def _is_round_behind(local: PeerContract, last: PeerContract | None) -> bool:
    """Whether a verification failed here that the peer doesn't know: its work is of a round ago."""
    return last is not None and bool(_to_revise(local) - _to_revise(last))


def _to_revise(contract: PeerContract | None) -> set[str]:
    works = contract.implementations if contract else []
    return {work.repo_id for work in works if work.status == "needs_revision"}


def _work_differences(
    local: PeerContract | None, last: PeerContract | None, shown: PeerContract, repo_id: str
) -> list[Difference]:
    """What the peer has changed in its own work; what it leaves empty stays as it was."""
    entry = _entry_of(shown, repo_id)
    known = _entry_of(local, repo_id)
    if entry is None or entry.status == "pending":
        return []
    kept = known or entry
    work = Implemented(
        status=entry.status,
        plan=entry.plan or kept.plan or None,
        files=tuple(entry.files or kept.files or ()),
        notes=entry.notes or kept.notes or None,
        test_endpoint=entry.test_endpoint or kept.test_endpoint or None,
        started_at=stamp_of(entry.started_at) if entry.started_at else None,
        completed_at=stamp_of(entry.completed_at) if entry.completed_at else None,
    )
    now = (work.status, work.plan or "", work.files, work.notes or "", work.test_endpoint or "")
    if _work_of(entry) == _work_of(_entry_of(last, repo_id)) or now == _work_of(known):
        return []
    return [work]


def _entry_of(contract: PeerContract | None, repo_id: str) -> PeerImplementation | None:
    works = contract.implementations if contract else []
    return next((work for work in works if work.repo_id == repo_id), None)


# --- the facts that follow ----------------------------------------------------------------------


def to_facts(
    differences: Sequence[Difference],
    current: VersionFact | None,
    *,
    repo_id: str,
    agent_id: str,
    parties: tuple[str, ...],
    policy: AgreementPolicy,
    verification: VerificationPolicy | None,
    roles: dict[str, PartyRole] | None,
    round_number: int,
    stamp: int,
) -> list[Fact]:
    """The facts that the peer's repo would have written, with this node's `stamp`.

    `current` and `round_number` are those of the contract here; `parties`, `policy`, `verification`
    and `roles` are for a version that is new here.
    """
    facts: list[Fact] = []
    for difference in differences:
        if isinstance(difference, Proposed | Updated | Outrun):
            version = VersionFact(
                version=difference.version,
                digest=difference.digest,
                content=difference.content,
                repo_id=repo_id,
                agent_id=agent_id,
                parties=parties,
                policy=policy,
                verification=verification,
                roles=roles,
                parent=_parent_digest(difference, current),
                stamp=stamp,
            )
            facts.append(version)
            if not isinstance(difference, Outrun):
                current, round_number = version, 1
            continue
        if current is None:
            raise ValueError("a contract that is unknown here begins with a Proposed")
        facts += _step_facts(difference, current, repo_id, agent_id, round_number, stamp)
    return facts


def _step_facts(
    difference: Responded | Implemented | Verified,
    version: VersionFact,
    repo_id: str,
    agent_id: str,
    number: int,
    stamp: int,
) -> list[Fact]:
    place: dict[str, Any] = {"version": version.version, "digest": version.digest, "stamp": stamp}
    author: dict[str, Any] = {"repo_id": repo_id, "agent_id": agent_id}
    if isinstance(difference, Responded):
        return [ResponseFact(**place, **author, action=difference.action)]
    if isinstance(difference, Verified):
        verification = VerificationFact(**place, **author, round=number, result=difference.result)
        opened = RoundFact(**place, number=number + 1)
        return [verification, opened] if difference.result == "failure" else [verification]
    complete = difference.status == "complete"
    work = asdict(difference) | {
        "started_at": difference.started_at or stamp,
        "completed_at": (difference.completed_at or stamp) if complete else None,
    }
    return [ImplementationFact(**place, **author, round=number, **work)]


def _parent_digest(
    difference: Proposed | Updated | Outrun, current: VersionFact | None
) -> str | None:
    if isinstance(difference, Outrun) or (
        isinstance(difference, Updated) and difference.parent is not None
    ):
        return difference.parent
    return current.parent if current else None
