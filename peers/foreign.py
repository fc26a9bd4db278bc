"""Foreign peers: what their whole objects say for themselves (design §8).

They know the specification's text and no facts, and send contracts whole. Of such an object only
what the peer itself changed counts: it is compared with what was last exchanged with that peer,
and each difference becomes a fact of the peer's own repo. What we know already is no difference,
so nothing is echoed, and an object that is stale undoes nothing.

Repo ids in the objects are ours: the caller maps the peer's ids before it asks.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from schemas.base import JsonObject, stamp_of
from schemas.contract import AgreementPolicy, ContractStatus, ResponseAction
from schemas.facts import (
    Fact,
    ImplementationFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from schemas.sync import PeerContract, PeerImplementation

Digest: TypeAlias = Callable[[JsonObject], str]
"""SHA-256 of the canonical JSON. What it raises for content without one passes through."""

_Work: TypeAlias = tuple[str, str, tuple[str, ...], str, str]

OPEN: tuple[ContractStatus, ...] = ("proposed", "negotiating")
BUILT: tuple[ContractStatus, ...] = ("implemented", "verified")


HEADER = ("name", "objective", "status")
"""Members of a project that a peer may change."""

SEEN_MAX = 64
"""Fingerprints to remember: an echo of something older is not known as one."""


class NotTheirs(Exception):
    """A contract that is unknown here and that another repo than the peer's proposed."""


# --- what a peer may have changed ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposed:
    """A contract that is unknown here."""

    version: int
    content: JsonObject
    digest: str


@dataclass(frozen=True, slots=True)
class Updated:
    """A version above ours, or other content for ours, which is a race."""

    version: int
    content: JsonObject
    digest: str
    parent: str | None
    """Digest of the version that it grew from; None if our current version grew from it too."""


@dataclass(frozen=True, slots=True)
class Outrun:
    """A version of the peer's own below ours, made before it heard of ours: it has lost."""

    version: int
    content: JsonObject
    digest: str
    parent: str | None
    """Digest of the version that it grew from; None if nobody knows."""


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


# --- what was said before -----------------------------------------------------------------------


class Exchange(BaseModel):
    """What was exchanged with one peer about one contract, kept between messages.

    `last` went either way; `seen` are fingerprints of all that did, lately; `pending` is on its way
    to the peer, or was and got no answer. `heard` is the newest (version, time) of the peer's own
    clock: its times are never compared with ours, for some peers send local time as if it were UTC.
    """

    model_config = ConfigDict(frozen=True)

    last: PeerContract | None = None
    seen: tuple[str, ...] = ()
    heard: tuple[int, int] | None = None
    pending: PeerContract | None = None

    @classmethod
    def of(cls, kept: str | None) -> "Exchange":
        """From JSON as it was kept; None where nothing was exchanged yet."""
        return cls() if kept is None else cls.model_validate_json(kept)

    def before_sending(self, ours: PeerContract) -> "Exchange":
        """While `ours` is on its way: the peer may take it, and change it, before that is known."""
        return self.model_copy(update={"pending": ours})

    def after_sending(self, ours: PeerContract) -> "Exchange":
        """Once the peer has confirmed `ours`; a `skipped` or an `error` confirms nothing."""
        taken = {"last": ours, "seen": self._seen_with(ours), "pending": None}
        return self.model_copy(update=taken)

    def after_crossing(self, ours: PeerContract) -> "Exchange":
        """The same when the peer has said something of its own meanwhile: that stays the last."""
        return self.model_copy(update={"seen": self._seen_with(ours), "pending": None})

    def after_hearing(self, theirs: PeerContract) -> "Exchange":
        """Once what `theirs` differs in is applied here."""
        if self.is_stale(theirs):
            return self
        at = _time_of(theirs)
        ours = self.last is not None and at == _time_of(self.last)
        behind = self.last is not None and theirs.version < self.last.version
        return Exchange(
            last=self.last if behind else theirs,
            seen=self._seen_with(theirs),
            heard=self.heard if at is None or ours else (theirs.version, at),
            pending=self.pending,
        )

    def base_of(self, theirs: PeerContract, digest: Digest) -> PeerContract | None:
        """What the peer changed to get to `theirs`: what was exchanged last, or what is on its way
        if it has gone back from that. For it was read before, so this is a step of its own."""
        last, pending = self.last, self.pending
        if last is None or pending is None or not says_same(theirs, last, digest):
            return last
        goes_on = (pending.version, digest(pending.content)) == (last.version, digest(last.content))
        return pending if goes_on else last

    def is_stale(self, theirs: PeerContract) -> bool:
        """Whether it was exchanged before, or the peer has said something newer since.

        Newer is the higher version, then the later time (CACP 2.0, Conflict Resolution).
        """
        if self.has_seen(theirs):
            return True
        at = _time_of(theirs)
        return at is not None and self.heard is not None and (theirs.version, at) < self.heard

    def has_seen(self, contract: PeerContract) -> bool:
        """Whether the very same was exchanged before, its time included."""
        return _fingerprint(contract) in self.seen

    def _seen_with(self, contract: PeerContract) -> tuple[str, ...]:
        new = _fingerprint(contract)
        return (*(old for old in self.seen if old != new), new)[-SEEN_MAX:]


def _time_of(contract: PeerContract) -> int | None:
    return stamp_of(contract.updated_at) if contract.updated_at else None


def _fingerprint(contract: PeerContract) -> str:
    """What the contract says, and when, in 32 hex digits."""
    works = sorted((work.repo_id, _work_of(work)) for work in contract.implementations)
    said = [contract.version, contract.status, contract.content, works, _time_of(contract)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]


def _work_of(work: PeerImplementation | None) -> _Work:
    """What counts of an entry: no times, which peers restamp, and "" for what is absent."""
    if work is None:
        return ("pending", "", (), "", "")
    files = tuple(work.files or ())
    return (work.status, work.plan or "", files, work.notes or "", work.test_endpoint or "")


def says_same(one: PeerContract, other: PeerContract, digest: Digest) -> bool:
    """Whether two objects say the same of a contract, whenever they say it."""
    return _state_of(one, digest) == _state_of(other, digest)


def differing(ours: PeerContract, theirs: PeerContract, digest: Digest) -> str | None:
    """What both say of a contract, whenever they say it, in 64 hex digits; None when it is the
    same, or theirs is of a version that ours has not come to."""
    said = [_state_of(ours, digest), _state_of(theirs, digest)]
    if said[0] == said[1] or theirs.version > ours.version:
        return None
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _state_of(contract: PeerContract, digest: Digest) -> tuple[object, ...]:
    works = {
        work.repo_id: _work_of(work)
        for work in contract.implementations
        if work.status != "pending"
    }
    return contract.version, contract.status, digest(contract.content), works


# --- what differs -------------------------------------------------------------------------------


def contract_differences(
    ours: PeerContract | None,
    exchange: Exchange,
    theirs: PeerContract,
    repo_id: str,
    digest: Digest,
) -> list[Difference]:
    """What the peer that holds `repo_id` has changed, as `theirs` shows it.

    `ours` is the contract as we would send it, None when it is unknown here. Raises NotTheirs.
    """
    if ours is None and theirs.proposed_by not in (None, repo_id):
        raise NotTheirs(
            f"Contract {theirs.contract_id} is unknown here, and not yours: "
            f"repo {theirs.proposed_by} proposed it and has to send it"
        )
    content = digest(theirs.content)
    if ours is None:
        first = Proposed(theirs.version, theirs.content, content)
        return [first, *_first_steps(theirs, repo_id)]
    if exchange.is_stale(theirs):
        return []
    place = (theirs.version, content)
    last = exchange.base_of(theirs, digest)
    known = last if last and (last.version, digest(last.content)) == place else None
    if theirs.version < ours.version:
        if known or theirs.proposed_by not in (None, repo_id):
            return []
        grew_from = _parent(ours, last, theirs, digest)
        return [Outrun(theirs.version, theirs.content, content, grew_from)]
    if (ours.version, digest(ours.content)) == place:
        return _step_differences(ours, known, theirs, repo_id)
    if known:
        return []
    parent = _parent(ours, last, theirs, digest)
    update = Updated(theirs.version, theirs.content, content, parent)
    return [update, *_first_steps(theirs, repo_id)]


def _first_steps(theirs: PeerContract, repo_id: str) -> list[Difference]:
    """Steps that the peer has taken on a version of which this is the first word."""
    asked: list[Difference] = (
        [Responded("request_change")] if theirs.status == "negotiating" else []
    )
    return [*asked, *_work_differences(None, None, theirs, repo_id)]


def _parent(
    ours: PeerContract, last: PeerContract | None, theirs: PeerContract, digest: Digest
) -> str | None:
    """What an update grew from is what the peer last knew: ours only if it was told of ours."""
    for before in (last, ours):
        if before is not None and before.version < theirs.version:
            return digest(before.content)
    return None


def _step_differences(
    ours: PeerContract, last: PeerContract | None, theirs: PeerContract, repo_id: str
) -> list[Difference]:
    """Steps taken on the version that both have."""
    found: list[Difference] = []
    before: ContractStatus = last.status if last else "proposed"
    now = theirs.status
    # A status that we have too may be another's doing, relayed: that is no word of the peer's.
    moved = now not in (before, ours.status)
    if moved and now == "negotiating":
        found.append(Responded("request_change"))
    if moved and now == "proposed":
        # Nothing else leads back to it on the same version.
        found.append(Responded("reject"))
    if moved and now not in OPEN and before in OPEN and ours.status in OPEN:
        found.append(Responded("agree"))
    if _is_round_behind(ours, last):
        return found
    if _fails_round(ours, last, theirs, repo_id):
        # The failure opens a new round, in which every repo's work needs revision anyway.
        return [*found, Verified("failure")]
    found += _work_differences(ours, last, theirs, repo_id)
    if moved and now == "verified":
        found.append(Verified("success"))
    return found


def _fails_round(
    ours: PeerContract, last: PeerContract | None, theirs: PeerContract, repo_id: str
) -> bool:
    """Whether the peer has verified what was built, and found a failure."""
    if theirs.status != "agreed" or ours.status == "agreed":
        return False
    revised = _to_revise(theirs) - _to_revise(last)
    if last is not None and last.status in BUILT:
        return bool(revised)
    # It took our word that all is built before this node heard that it has. Its own work alone it
    # may revise without that.
    return ours.status in BUILT and bool(revised - {repo_id})


def _is_round_behind(ours: PeerContract, last: PeerContract | None) -> bool:
    """Whether a verification failed here that the peer wasn't told of: its work is of before."""
    return last is not None and bool(_to_revise(ours) - _to_revise(last))


def _to_revise(contract: PeerContract | None) -> set[str]:
    works = contract.implementations if contract else []
    return {work.repo_id for work in works if work.status == "needs_revision"}


def _work_differences(
    ours: PeerContract | None, last: PeerContract | None, theirs: PeerContract, repo_id: str
) -> list[Difference]:
    """What the peer says of its own work; what it leaves empty stays as it was."""
    said = _entry_of(theirs, repo_id)
    known = _entry_of(ours, repo_id)
    if said is None or said.status == "pending":
        return []
    kept = known or said
    work = Implemented(
        status=said.status,
        plan=said.plan or kept.plan or None,
        files=tuple(said.files or kept.files or ()),
        notes=said.notes or kept.notes or None,
        test_endpoint=said.test_endpoint or kept.test_endpoint or None,
        started_at=stamp_of(said.started_at) if said.started_at else None,
        completed_at=stamp_of(said.completed_at) if said.completed_at else None,
    )
    now = (work.status, work.plan or "", work.files, work.notes or "", work.test_endpoint or "")
    if _work_of(said) == _work_of(_entry_of(last, repo_id)) or now == _work_of(known):
        return []
    return [work]


def _entry_of(contract: PeerContract | None, repo_id: str) -> PeerImplementation | None:
    works = contract.implementations if contract else []
    return next((work for work in works if work.repo_id == repo_id), None)


# --- what follows from it -----------------------------------------------------------------------


def to_facts(
    differences: Sequence[Difference],
    current: VersionFact | None,
    *,
    repo_id: str,
    agent_id: str,
    parties: tuple[str, ...],
    policy: AgreementPolicy,
    round_number: int,
    stamp: int,
) -> list[Fact]:
    """The facts that the peer's repo would have written, stamped by our clock.

    `current` and `round_number` are those of the contract here; `parties` and `policy` bind a
    version that is new here.
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
        found = VerificationFact(**place, **author, round=number, result=difference.result)
        opened = RoundFact(**place, number=number + 1)
        return [found, opened] if difference.result == "failure" else [found]
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
