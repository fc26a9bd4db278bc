"""What a receipt proves, and what not: the conditions, one by one (N2, "Who is believed").

A receipt proves a side of a repo when a run of it passed, on a clean tree of the commit that the
repo declared complete, against the content that is agreed, in the current round. All of it follows
from facts, so nodes that hold the same facts agree on what is proven. That a runner signed it, and
that the node knew the runner, is checked where a receipt comes in (`server.domain.receipts`).

Order goes by the stamps of nodes: a receipt counts that was recorded after the completion. The
runner's clock only excludes what can't be true: a run that ended after it was recorded, or began
before the completion. It may be wrong by `CLOCK_SKEW`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.base import iso, stamp_of
from schemas.facts import ImplementationFact, ReceiptFact, VersionFact
from schemas.receipt import ProofReceipt, ReceiptSide
from schemas.verification import PartyRole
from server.domain.agents import canonical, same_agent
from server.domain.terms import demands, sides_to_prove

CLOCK_SKEW = 5 * 60 * 1_000_000
"""How far a runner's clock may be from its node's, in microseconds."""
FAILED = frozenset({"regression", "unclassified"})
"""Outcomes that say that the work is wrong. The others say nothing of it: it failed before the work
too, or it could not be run."""

Side = tuple[str, ReceiptSide]
"""A repo_id, and the side of the contract that it has."""


class ProofProblem(NamedTuple):
    """Why a receipt proves nothing: `reason` for programs, `why` for people."""

    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class ProofGround:
    """What receipts of a contract are held against: its current version and round.

    `versions` are those with the current content, the current one first; usually one. `works` has
    the work of this round by repo_id. `roles` are those of the parties, as far as they are known.
    """

    versions: Sequence[VersionFact]
    round: int
    works: Mapping[str, ImplementationFact]
    roles: Mapping[str, PartyRole] = field(default_factory=dict)

    @property
    def current(self) -> VersionFact:
        return self.versions[0]

    @property
    def demands(self) -> frozenset[str]:
        """What any of the versions asks for (`server.domain.terms`)."""
        return frozenset().union(*(demands(version.verification) for version in self.versions))

    def role_of(self, repo_id: str) -> PartyRole:
        frozen = self.current.roles
        known = self.roles if frozen is None else frozen
        return known.get(repo_id, "both")


def ground_of(
    versions: Sequence[VersionFact],
    round: int,
    works: Iterable[ImplementationFact],
    roles: Mapping[str, PartyRole] | None = None,
) -> ProofGround:
    """The ground of receipts, from all work on the current version."""
    of_round = {work.repo_id: work for work in works if work.round == round}
    return ProofGround(versions, round, of_round, roles or {})


def problem_of(ground: ProofGround, receipt: ProofReceipt, stamp: int) -> ProofProblem | None:
    """Why a receipt that was recorded at `stamp` proves nothing, apart from a failure; None if it
    proves its side, or would by having passed."""
    return (
        _of_result(receipt)
        or _of_place(ground, receipt)
        or _of_tree(receipt)
        or _of_work(ground, receipt)
        or _of_time(ground, receipt, stamp)
        or _of_runner(ground, receipt)
    )


def _of_result(receipt: ProofReceipt) -> ProofProblem | None:
    """It says that it passed, and that it did not."""
    if receipt.outcome != "passed" or (receipt.exit_code == 0 and receipt.cases != 0):
        return None
    against = "tried no case" if receipt.exit_code == 0 else f"ended with {receipt.exit_code}"
    return ProofProblem(
        "receipt_contradicts",
        f"it says that it passed, and that it {against}: a run passes with exit code 0, and with "
        "one case or more where cases are counted",
    )


def _of_place(ground: ProofGround, receipt: ProofReceipt) -> ProofProblem | None:
    """Another version, content, repo, side or round."""
    current = ground.current
    if receipt.version != current.version:
        return ProofProblem(
            "receipt_version",
            f"it is of version {receipt.version}, and version {current.version} is current",
        )
    if receipt.digest != current.digest:
        return ProofProblem(
            "receipt_digest",
            f"it is of the content {receipt.digest[:12]}…, and {current.digest[:12]}… is agreed",
        )
    if receipt.repo not in current.parties:
        return ProofProblem(
            "receipt_repo", f"its repo {receipt.repo} is not a party to version {current.version}"
        )
    role = ground.role_of(receipt.repo)
    if role not in (receipt.side, "both"):
        return ProofProblem(
            "receipt_side", f"it is of the {receipt.side}, and its repo is the {role}"
        )
    if receipt.round != ground.round:
        return ProofProblem(
            "receipt_round", f"it is of round {receipt.round}, and round {ground.round} is current"
        )
    return None


def _of_tree(receipt: ProofReceipt) -> ProofProblem | None:
    """What was run was not what the commit has, or was not the repo's own program."""
    if receipt.dirty:
        return ProofProblem(
            "receipt_dirty",
            f"the working tree had changes that commit {receipt.commit[:12]} lacks: commit them, "
            "and run it again",
        )
    # It stands for a provider, whose program did not run then; a consumer's did, and called it.
    if receipt.target == "mock" and receipt.side == "provider":
        return ProofProblem(
            "receipt_mock", "a mock was probed: it says what the contract says, not what was built"
        )
    return None


def _of_work(ground: ProofGround, receipt: ProofReceipt) -> ProofProblem | None:
    """The repo is not complete in this round, or declared another commit complete."""
    work = ground.works.get(receipt.repo)
    if work is None or work.status != "complete":
        return ProofProblem(
            "receipt_not_complete",
            f"its repo has not declared its work complete in round {ground.round}: call "
            "cacp/implementation/complete with the commit first",
        )
    if work.commit is None and ground.demands:
        return ProofProblem(
            "receipt_no_commit",
            "its repo has declared no commit complete: call cacp/implementation/complete again, "
            "with the commit",
        )
    if work.commit is not None and work.commit != receipt.commit:
        return ProofProblem(
            "receipt_commit",
            f"it is of commit {receipt.commit[:12]}, and {work.commit[:12]} was declared complete",
        )
    return None


def _of_time(ground: ProofGround, receipt: ProofReceipt, stamp: int) -> ProofProblem | None:
    """It was run before the completion, or can't have been run yet."""
    work = ground.works[receipt.repo]
    completed = work.completed_at or work.stamp
    started = stamp_of(receipt.started_at)
    if started + receipt.duration * 1_000 > stamp + CLOCK_SKEW:
        return ProofProblem(
            "receipt_future",
            f"by its runner's clock it ended after {iso(stamp)}, when it was recorded: set that "
            "clock",
        )
    if stamp <= completed or started < completed - CLOCK_SKEW:
        return ProofProblem(
            "receipt_early",
            f"it was begun before its repo declared its work complete, at {iso(completed)}: run it "
            "again",
        )
    return None


def _of_runner(ground: ProofGround, receipt: ProofReceipt) -> ProofProblem | None:
    """Its runner is the agent that built what it proves, where that must be another."""
    builder = ground.works[receipt.repo].agent_id
    if "independent" in ground.demands and same_agent(
        canonical(builder), canonical(receipt.runner)
    ):
        return ProofProblem(
            "receipt_self",
            f"its runner {receipt.runner} is the agent that built it, and another must verify it",
        )
    return None


def proven(ground: ProofGround, receipts: Iterable[ReceiptFact]) -> frozenset[Side]:
    """The sides that receipts prove, and none disproves: a failure stands until the same runner has
    run the same command again, or the repo declares other work complete."""
    passed, failed = _judged(ground, receipts)
    return frozenset(passed - failed.keys())


def standing_failures(
    ground: ProofGround, receipts: Iterable[ReceiptFact]
) -> dict[Side, ReceiptFact]:
    """The sides that a receipt stands against, each with the latest such."""
    return _judged(ground, receipts)[1]


def _judged(
    ground: ProofGround, receipts: Iterable[ReceiptFact]
) -> tuple[set[Side], dict[Side, ReceiptFact]]:
    """The sides of which a receipt passed, and those that one stands against."""
    passed: set[Side] = set()
    failed: dict[Side, ReceiptFact] = {}
    for fact in sorted(receipts, key=lambda fact: fact.stamp):
        if fact.round != ground.round:
            continue
        receipt = ProofReceipt.model_validate(fact.receipt)
        if problem_of(ground, receipt, fact.stamp) is None:
            side = receipt.repo, receipt.side
            if receipt.outcome == "passed":
                passed.add(side)
            elif receipt.outcome in FAILED:
                failed[side] = fact
    return passed, failed


def unproven(ground: ProofGround, receipts: Iterable[ReceiptFact]) -> list[Side]:
    """The sides of which the versions ask receipts, and which are not proven."""
    asked = sides_to_prove(ground.versions)
    return sorted(asked - proven(ground, receipts)) if asked else []


def started_at(fact: ReceiptFact) -> int:
    """When a run began, by its runner's clock: 0 if it doesn't say."""
    try:
        return stamp_of(str(fact.receipt["startedAt"]))
    except (KeyError, ValueError, OverflowError):
        return 0
