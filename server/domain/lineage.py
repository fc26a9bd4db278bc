"""Decides which facts of other nodes follow on the known facts of a contract (design §7).

Versions and rounds count up one by one. A fact that is ahead waits for its predecessor, which may
be on its way; a fact that its author had no right to write is refused. Each rule only requires that
some fact is present, and facts are never removed: what a version permits follows from its number,
content and parties, which are its key. So nodes that learn the same facts in any order accept the
same ones. A refusal is not final: a node that has accepted the fact also has the version that binds
its author, and sends both.

| fact                         | follows on                                                      |
|------------------------------|-----------------------------------------------------------------|
| version 1                    | nothing: the contract's id says who begins it                   |
| version n                    | version n-1 with its parent's digest, of which its repo is party |
| version that a node heard    | any version of which its repo is party, 1000 below at most      |
| response                     | its version                                                     |
| implementation, verification | its version, of which its repo is party, and its round          |
| receipt                      | the same                                                        |
| round n                      | a failed verification, by a party, of each round before         |

A version that a node "heard" was written by a foreign peer and signed by the node that received it.
Versions with the same content may bind different parties; any of them suffices.

The id of a contract from a foreign peer or an older release does not prove who began it. There,
version 1 follows on nothing while no version is known, and otherwise on a version of which its repo
is party. So two nodes may hold different first versions of such a contract.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, cast

from schemas.facts import (
    Fact,
    ImplementationFact,
    ReceiptFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from schemas.mesh import Signature, SignedFact
from server.domain.agents import same_agent
from server.domain.contract import Facts, winner
from server.domain.identifiers import is_beginner, names_beginner

VERSION_JUMP_MAX = 1_000
"""A version further ahead than this can't be an update that a foreign peer made while offline."""


class ContractRef(NamedTuple):
    """The contract of some facts. Its id may name the node that began it in this project."""

    project_id: str
    contract_id: str


class Sent(NamedTuple):
    """A received fact, and the node that signed it."""

    fact: Fact
    node: str

    @property
    def is_own(self) -> bool:
        """Whether its author's own node signed it, which counts versions one by one. A fact of a
        foreign peer is signed by the node that received it, which may have missed earlier ones."""
        author = author_of(self.fact)
        return author is not None and same_agent(author, self.node)


class WaitingFact(NamedTuple):
    """Why a fact must wait for a predecessor that is not here yet."""

    reason: str


class RefusedFact(NamedTuple):
    """Why a fact is refused: its author had no right to write it, as far as is known here."""

    reason: str


class Followed(NamedTuple):
    """The received facts: those to accept, in an order in which they follow, and the others with
    the reasons."""

    taken: list[Fact]
    waiting: list[tuple[Fact, str]]
    refused: list[tuple[Fact, str]]


def one_each(sent: Iterable[SignedFact]) -> list[SignedFact]:
    """The first received fact for each key, in the order of the keys."""
    first = {(signed.fact.kind, signed.fact.key): signed for signed in reversed(list(sent))}
    return [signed for _, signed in sorted(first.items())]


def is_news(facts: Facts, fact: Fact) -> bool:
    """Whether a fact is unknown, or replaces the known one with its key."""
    known = facts.get((fact.kind, fact.key))
    return known is None or (known != fact and winner(known, fact) == fact)


def author_of(fact: Fact) -> str | None:
    """The author of a fact; None for a round, and for a receipt: nobody speaks for a runner, whose
    own signature is in it."""
    return None if isinstance(fact, RoundFact | ReceiptFact) else fact.agent_id


def by_whom(sent: SignedFact) -> tuple[dict[str, Any], str | None, Signature]:
    """A fact's stamp (as a body), its author and its signature."""
    return {"stamp": sent.fact.stamp}, author_of(sent.fact), sent.signature


def follow(of: ContractRef, facts: Facts, sent: Sequence[Sent]) -> Followed:
    """Sort received facts by what is known of the contract and by the other received facts."""
    known = _Known(of, facts)
    outcome = Followed([], [], [])
    versions = [sent_fact for sent_fact in sent if isinstance(sent_fact.fact, VersionFact)]
    for left, why in _follow_versions(known, sorted(versions, key=_order), outcome.taken):
        _file(outcome, left.fact, why)
    # Other facts follow on versions and on earlier rounds, so these come first.
    others = [sent_fact for sent_fact in sent if not isinstance(sent_fact.fact, VersionFact)]
    for sent_fact in sorted(others, key=_order):
        problem = known.problem(sent_fact)
        if problem is None:
            known.add(sent_fact.fact)
            outcome.taken.append(sent_fact.fact)
        else:
            _file(outcome, sent_fact.fact, problem)
    return outcome


def _follow_versions(
    known: "_Known", left: Sequence[Sent], taken: list[Fact]
) -> list[tuple[Sent, WaitingFact | RefusedFact]]:
    """Append the versions that follow to `taken`, whatever their order; returns the others with
    their problems. A version is tried again only once its predecessor is accepted: trying all of
    them for each accepted one would let a member's message take hours."""
    problems: dict[int, WaitingFact | RefusedFact] = {}
    lacking = _Lacking()
    coming = deque(range(len(left)))
    while coming:
        at = coming.popleft()
        sent_fact = left[at]
        problem = known.problem(sent_fact)
        if problem is None:
            problems.pop(at, None)
            known.add(sent_fact.fact)
            taken.append(sent_fact.fact)
            coming.extend(lacking.woken_by(cast(VersionFact, sent_fact.fact)))
        else:
            problems[at] = problem
            if (
                isinstance(problem, WaitingFact)
                or cast(VersionFact, sent_fact.fact).parent is not None
            ):
                lacking.add(at, sent_fact)
    return [(left[at], problem) for at, problem in sorted(problems.items())]


def _file(outcome: Followed, fact: Fact, problem: WaitingFact | RefusedFact) -> None:
    into = outcome.waiting if isinstance(problem, WaitingFact) else outcome.refused
    into.append((fact, problem.reason))


def _order(sent_fact: Sent) -> tuple[int, int]:
    fact = sent_fact.fact
    return fact.version, 0 if isinstance(fact, VersionFact | ResponseFact) else _round(fact)


def _round(fact: RoundFact | ImplementationFact | VerificationFact | ReceiptFact) -> int:
    return fact.number if isinstance(fact, RoundFact) else fact.round


class _Lacking:
    """Versions that wait for an earlier version that binds their repo."""

    def __init__(self) -> None:
        self._own: dict[tuple[str, str], list[tuple[frozenset[str], int]]] = {}
        """By their parent's place and their repo."""
        self._heard: dict[str, list[tuple[int, int]]] = {}
        """By their repo: heaps with the lowest version first."""

    def add(self, at: int, sent_fact: Sent) -> None:
        fact = cast(VersionFact, sent_fact.fact)
        if sent_fact.is_own and fact.parent is not None:
            own = self._own.setdefault((_before(fact), fact.repo_id), [])
            own.append((frozenset(fact.parties), at))
        else:
            heappush(self._heard.setdefault(fact.repo_id, []), (fact.version, at))

    def woken_by(self, fact: VersionFact) -> Iterator[int]:
        """Remove and return the versions that may follow now that `fact` is accepted."""
        if not self._own and not self._heard:
            return
        parties = frozenset(fact.parties)
        for repo in parties:
            own = self._own.pop((fact.place, repo), [])
            lacking = [entry for entry in own if not parties.issubset(entry[0])]
            yield from (at for of, at in own if parties.issubset(of))
            if lacking:
                self._own[fact.place, repo] = lacking
            heard = self._heard.get(repo, [])
            while heard and heard[0][0] <= fact.version + VERSION_JUMP_MAX:
                yield heappop(heard)[1]


class _Known:
    """The known facts of a contract: its versions by number and content, with their parties, and
    the failed rounds."""

    def __init__(self, of: ContractRef, facts: Facts) -> None:
        self._of = of
        self._places: set[str] = set()
        self._binding: dict[tuple[str, str], list[frozenset[str]]] = {}
        """The parties of each version at a place that binds a repo."""
        self._failed: dict[str, set[int]] = {}
        self._open: dict[str, int] = {}
        """The first round at a place that has not failed."""
        self._newest: dict[str, int] = {}
        """The highest version that binds a repo."""
        for fact in sorted(facts.values(), key=lambda fact: fact.kind != "version"):
            self.add(fact)

    def add(self, fact: Fact) -> None:
        if isinstance(fact, VersionFact):
            self._places.add(fact.place)
            parties = frozenset(fact.parties)
            for repo in parties:
                self._binding.setdefault((fact.place, repo), []).append(parties)
                self._newest[repo] = max(fact.version, self._newest.get(repo, 0))
        elif isinstance(fact, VerificationFact) and fact.result == "failure":
            place = fact.place
            if (place, fact.repo_id) in self._binding:
                failed = self._failed.setdefault(place, set())
                failed.add(fact.round)
                while self._open.setdefault(place, 1) in failed:
                    self._open[place] += 1

    def problem(self, sent_fact: Sent) -> WaitingFact | RefusedFact | None:
        fact = sent_fact.fact
        if isinstance(fact, VersionFact):
            if fact.version == 1 and fact.parent is None and self._begins(sent_fact.node):
                return None
            return self._of_own(fact) if sent_fact.is_own else self._of_heard(fact)
        place = fact.place
        if place not in self._places:
            return WaitingFact(f"it is about content of version {fact.version} that is not here")
        if isinstance(fact, ResponseFact):
            return None
        if not isinstance(fact, RoundFact) and (place, fact.repo_id) not in self._binding:
            return _no_party(fact.version)
        missing = self._open.get(place, 1)
        if missing >= _round(fact):
            return None
        return WaitingFact(
            f"round {_round(fact)} of version {fact.version} follows on a failed verification of "
            f"round {missing}, which is not here"
        )

    def _begins(self, node: str) -> bool:
        return is_beginner(self._of.contract_id, self._of.project_id, node)

    def _of_own(self, fact: VersionFact) -> WaitingFact | RefusedFact | None:
        if (fact.version == 1) != (fact.parent is None):
            return RefusedFact(
                "a contract begins with version 1, and every other version has a parent"
            )
        if fact.parent is None:
            return self._of_first(fact)
        if _before(fact) not in self._places:
            return WaitingFact(
                f"version {fact.version} follows on version {fact.version - 1} with the digest of "
                "its parent, which is not here"
            )
        binding = self._binding.get((_before(fact), fact.repo_id))
        if binding is None:
            return _no_party(fact.version - 1)
        own = frozenset(fact.parties)
        if not any(parties.issubset(own) for parties in binding):
            return RefusedFact(f"it leaves out a party of version {fact.version - 1}")
        return None

    def _of_heard(self, fact: VersionFact) -> WaitingFact | None:
        bound = self._newest.get(fact.repo_id)
        if fact.parent is None and not self._newest and not names_beginner(self._of.contract_id):
            bound = 0
        if bound is not None and fact.version <= bound + VERSION_JUMP_MAX:
            return None
        return WaitingFact(
            f"version {fact.version} follows on a version that binds its repo and is not here"
        )

    def _of_first(self, fact: VersionFact) -> WaitingFact | RefusedFact | None:
        if names_beginner(self._of.contract_id):
            return RefusedFact(
                "its id says that another node began the contract, or in another project"
            )
        # Two nodes may each have received the first version of a foreign peer's contract; nobody
        # else may begin a known contract.
        if not self._newest or fact.repo_id in self._newest:
            return None
        return WaitingFact(
            "its repo is not a party to the contract, which has another first version here"
        )


def _no_party(version: int) -> RefusedFact:
    return RefusedFact(f"its repo is not a party to version {version}")


def _before(fact: VersionFact) -> str:
    return f"{fact.version - 1}/{fact.parent}"
