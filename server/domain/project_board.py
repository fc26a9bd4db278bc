"""A project's contracts as a board: by status, those that have waited longest first."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, get_args

from schemas.attention import AttentionKind
from schemas.contract import ContractStatus, ContractType
from server.domain.attention.contracts import openings_at
from server.domain.contract import Facts, current_of, status_of, updated_at
from server.domain.history import facts_until

STATUSES: tuple[ContractStatus, ...] = get_args(ContractStatus)
IDLE = 10**17
"""A rank after that of every stamp: of contracts that wait for nothing."""
Rank = tuple[int, str]


class CardStep(NamedTuple):
    """A step that a contract waits for since a stamp, and the repo that must take it."""

    kind: AttentionKind
    repo_id: str
    since: int


class BoardCard(NamedTuple):
    """A contract in short. `updated_at` is a stamp."""

    contract_id: str
    type: ContractType
    name: str
    version: int
    status: ContractStatus
    proposed_by: str
    updated_at: int
    steps: tuple[CardStep, ...] = ()

    @property
    def waiting_since(self) -> int | None:
        return min((step.since for step in self.steps), default=None)

    @property
    def rank(self) -> Rank:
        """The order of a column: the longest wait first; then the last change."""
        since = self.waiting_since
        return (2 * IDLE - self.updated_at if since is None else since), self.contract_id


class CardColumn(NamedTuple):
    """The cards of one status on a page. `total` counts all; `more`: others follow the last."""

    status: ContractStatus
    total: int
    cards: list[BoardCard]
    more: bool


class RepoLoad(NamedTuple):
    """What contracts wait for a repo to do: steps by kind, the number of contracts, and the stamp
    since when."""

    steps: dict[AttentionKind, int]
    contracts: int
    since: int


def columns(
    cards: Iterable[BoardCard],
    limit: int,
    *,
    status: ContractStatus | None = None,
    after: Rank | None = None,
) -> list[CardColumn]:
    """A page of each status, or of `status` alone: the cards after a rank."""
    by_status: dict[ContractStatus, list[BoardCard]] = {
        name: [] for name in STATUSES if status in (None, name)
    }
    for card in cards:
        if card.status in by_status:
            by_status[card.status].append(card)
    shown = []
    for name, members in by_status.items():
        left = sorted(members, key=lambda card: card.rank)
        if after is not None:
            left = [card for card in left if card.rank > after]
        shown.append(CardColumn(name, len(members), left[:limit], len(left) > limit))
    return shown


def loads(cards: Iterable[BoardCard]) -> dict[str, RepoLoad]:
    """What waits for each repo, for repos for which anything does."""
    kinds: dict[str, Counter[AttentionKind]] = {}
    contracts: Counter[str] = Counter()
    since: dict[str, int] = {}
    for card in cards:
        contracts.update({step.repo_id for step in card.steps})
        for step in card.steps:
            kinds.setdefault(step.repo_id, Counter())[step.kind] += 1
            since[step.repo_id] = min(since.get(step.repo_id, step.since), step.since)
    return {
        repo_id: RepoLoad(dict(steps), contracts[repo_id], since[repo_id])
        for repo_id, steps in kinds.items()
    }


def card_at(project_id: str, card: BoardCard, facts: Facts, at: int) -> BoardCard | None:
    """A contract's card as it was at the stamp `at`, from its facts; None if it was not there yet.
    Its name and type are those of now."""
    known = facts_until(facts, at)
    if not known:
        return None
    current, status = current_of(known), status_of(known)
    opened = openings_at(project_id, card.contract_id, known, current, status)
    return card._replace(
        version=current.version,
        status=status,
        proposed_by=current.repo_id,
        updated_at=updated_at(known),
        steps=in_order(CardStep(step.kind, step.repo_id, step.since) for step in opened),
    )


def in_order(steps: Iterable[CardStep]) -> tuple[CardStep, ...]:
    """The order in which a card lists its steps: the longest wait first."""
    return tuple(sorted(steps, key=lambda step: (step.since, step.kind, step.repo_id)))
