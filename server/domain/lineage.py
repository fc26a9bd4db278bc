"""Which facts of other nodes follow on what is known of a contract (design §7).

Versions and rounds are counted up one by one. What jumps ahead waits for what it follows on, which
may be on its way; what nothing here lets its author write is refused. Each rule asks only that
something is there, and what is there stays: what a version lets others write follows from its
number, content and parties, which are its key. So nodes that learn the same facts in any order take
the same. What is refused is no more than that: who has taken it has what binds its author too, and
brings both.

| fact                         | follows on                                                      |
|------------------------------|-----------------------------------------------------------------|
| version 1                    | nothing: the contract's id says who begins it                   |
| version n                    | version n-1 with its parent's digest, of which its repo is party |
| version that a node heard    | any version of which its repo is party, 1000 below at most      |
| response                     | its version                                                     |
| implementation, verification | its version, of which its repo is party, and its round          |
| round n                      | a failed verification, by a party, of each round before         |

Versions with one content may bind different parties: any of them will do.

Where the id names nobody, of a contract that comes from a foreign peer or an older release, nothing
else proves who began it: there version 1 follows on nothing while no other version is known, and
else on one of which its repo is party. So two nodes may hold different beginnings of such a one.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, cast

from schemas.facts import (
    Fact,
    ImplementationFact,
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
"""A version further ahead than this is no update that a foreign peer made while it was away."""


class Contract(NamedTuple):
    """Which contract facts are of: its id may say which node began it, in this project."""

    project_id: str
    contract_id: str


class Sent(NamedTuple):
    """A fact that came, and the node that signed it."""

    fact: Fact
    node: str

    @property
    def is_own(self) -> bool:
        """Whether its author's own node signed it, which counts one by one. What others did was
        signed by the node that heard it, which may have missed some of what a foreign peer did."""
        author = author_of(self.fact)
        return author is not None and same_agent(author, self.node)


class Waits(NamedTuple):
    """Why a fact is not taken yet: it may be once what it follows on is here."""

    reason: str


class Refused(NamedTuple):
    """Why a fact is not taken, nor kept: nothing here lets its author write it."""

    reason: str


class Followed(NamedTuple):
    """What came: the facts that follow, in an order in which they do, and the others with why."""

    taken: list[Fact]
    waiting: list[tuple[Fact, str]]
    refused: list[tuple[Fact, str]]


def one_each(sent: Iterable[SignedFact]) -> list[SignedFact]:
    """One fact for each key, the first of those that came, in the order of their keys."""
    first = {(one.fact.kind, one.fact.key): one for one in reversed(list(sent))}
    return [one for _, one in sorted(first.items())]


def is_news(facts: Facts, fact: Fact) -> bool:
    """Whether a fact is unknown, or takes the place of the one that is known."""
    known = facts.get((fact.kind, fact.key))
    return known is None or (known != fact and winner(known, fact) == fact)


def author_of(fact: Fact) -> str | None:
    """The agent whose word a fact is; a round is nobody's."""
    return None if isinstance(fact, RoundFact) else fact.agent_id


def by_whom(sent: SignedFact) -> tuple[dict[str, Any], str | None, Signature]:
    """When a fact was written, by whom, and who signed it."""
    return {"stamp": sent.fact.stamp}, author_of(sent.fact), sent.signature


def follow(of: Contract, facts: Facts, sent: Sequence[Sent]) -> Followed:
    """Sort what came by what is known of the contract, and by what came with it."""
    known = _Known(of, facts)
    found = Followed([], [], [])
    versions = [one for one in sent if isinstance(one.fact, VersionFact)]
    for left, why in _follow_versions(known, sorted(versions, key=_order), found.taken):
        _file(found, left.fact, why)
    # These follow on versions, and on rounds before their own, which come first.
    others = [one for one in sent if not isinstance(one.fact, VersionFact)]
    for one in sorted(others, key=_order):
        problem = known.problem(one)
        if problem is None:
            known.add(one.fact)
            found.taken.append(one.fact)
        else:
            _file(found, one.fact, problem)
    return found


def _follow_versions(
    known: "_Known", left: Sequence[Sent], taken: list[Fact]
) -> list[tuple[Sent, Waits | Refused]]:
    """Take the versions that follow, though what they follow on may come after them; the others,
    and why not. One is tried again only when what it lacks has come: trying all again for each
    that comes would cost a member's message hours."""
    problems: dict[int, Waits | Refused] = {}
    lacking = _Lacking()
    coming = deque(range(len(left)))
    while coming:
        at = coming.popleft()
        one = left[at]
        problem = known.problem(one)
        if problem is None:
            problems.pop(at, None)
            known.add(one.fact)
            taken.append(one.fact)
            coming.extend(lacking.woken_by(cast(VersionFact, one.fact)))
        else:
            problems[at] = problem
            if isinstance(problem, Waits) or cast(VersionFact, one.fact).parent is not None:
                lacking.add(at, one)
    return [(left[at], problem) for at, problem in sorted(problems.items())]


def _file(found: Followed, fact: Fact, problem: Waits | Refused) -> None:
    into = found.waiting if isinstance(problem, Waits) else found.refused
    into.append((fact, problem.reason))


def _order(one: Sent) -> tuple[int, int]:
    fact = one.fact
    return fact.version, 0 if isinstance(fact, VersionFact | ResponseFact) else _round(fact)


def _round(fact: RoundFact | ImplementationFact | VerificationFact) -> int:
    return fact.number if isinstance(fact, RoundFact) else fact.round


class _Lacking:
    """Versions that don't follow yet, by what they lack: one before that binds their repo."""

    def __init__(self) -> None:
        self._own: dict[tuple[str, str], list[tuple[frozenset[str], int]]] = {}
        """By the place of their parent and their repo."""
        self._heard: dict[str, list[tuple[int, int]]] = {}
        """By their repo, a heap: the lowest first."""

    def add(self, at: int, one: Sent) -> None:
        fact = cast(VersionFact, one.fact)
        if one.is_own and fact.parent is not None:
            own = self._own.setdefault((_before(fact), fact.repo_id), [])
            own.append((frozenset(fact.parties), at))
        else:
            heappush(self._heard.setdefault(fact.repo_id, []), (fact.version, at))

    def woken_by(self, fact: VersionFact) -> Iterator[int]:
        """Those which may follow now that this one has come, and lack it no more."""
        parties = frozenset(fact.parties)
        for repo in parties:
            own = self._own.pop((fact.place, repo), [])
            lacking = [one for one in own if not parties.issubset(one[0])]
            yield from (at for of, at in own if parties.issubset(of))
            if lacking:
                self._own[fact.place, repo] = lacking
            heard = self._heard.get(repo, [])
            while heard and heard[0][0] <= fact.version + VERSION_JUMP_MAX:
                yield heappop(heard)[1]


class _Known:
    """What is known of a contract: its versions, by number and content, with the parties of each,
    and which rounds have failed."""

    def __init__(self, of: Contract, facts: Facts) -> None:
        self._of = of
        self._places: set[str] = set()
        self._binding: dict[tuple[str, str], list[frozenset[str]]] = {}
        """The parties of the versions at a place that bind a repo."""
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
            place = _place(fact)
            if (place, fact.repo_id) in self._binding:
                failed = self._failed.setdefault(place, set())
                failed.add(fact.round)
                while self._open.setdefault(place, 1) in failed:
                    self._open[place] += 1

    def problem(self, one: Sent) -> Waits | Refused | None:
        fact = one.fact
        if isinstance(fact, VersionFact):
            if fact.version == 1 and fact.parent is None and self._begins(one.node):
                return None
            return self._of_own(fact) if one.is_own else self._of_heard(fact)
        place = _place(fact)
        if place not in self._places:
            return Waits(f"it is about version {fact.version}, and no such content is here")
        if isinstance(fact, ResponseFact):
            return None
        if not isinstance(fact, RoundFact) and (place, fact.repo_id) not in self._binding:
            return _no_party(fact.version)
        missing = self._open.get(place, 1)
        if missing >= _round(fact):
            return None
        return Waits(
            f"round {_round(fact)} of version {fact.version} follows on a failed verification of "
            f"round {missing}, which is not here"
        )

    def _begins(self, node: str) -> bool:
        return is_beginner(self._of.contract_id, self._of.project_id, node)

    def _of_own(self, fact: VersionFact) -> Waits | Refused | None:
        if (fact.version == 1) != (fact.parent is None):
            return Refused("a contract begins with version 1, and each other version has a parent")
        if fact.parent is None:
            return self._of_first(fact)
        if _before(fact) not in self._places:
            return Waits(
                f"version {fact.version} follows on version {fact.version - 1} with the digest of "
                "its parent, which is not here"
            )
        binding = self._binding.get((_before(fact), fact.repo_id))
        if binding is None:
            return _no_party(fact.version - 1)
        own = frozenset(fact.parties)
        if not any(parties.issubset(own) for parties in binding):
            return Refused(f"it leaves out a party of version {fact.version - 1}")
        return None

    def _of_heard(self, fact: VersionFact) -> Waits | None:
        bound = self._newest.get(fact.repo_id)
        if fact.parent is None and not self._newest and not names_beginner(self._of.contract_id):
            bound = 0
        if bound is not None and fact.version <= bound + VERSION_JUMP_MAX:
            return None
        return Waits(f"version {fact.version} follows on none that is here and binds its repo")

    def _of_first(self, fact: VersionFact) -> Waits | Refused | None:
        if names_beginner(self._of.contract_id):
            return Refused("another node began the contract, or in another project: its id says so")
        # Two nodes may each have heard a foreign peer begin a contract; nobody else begins one that
        # there is.
        if not self._newest or fact.repo_id in self._newest:
            return None
        return Waits("its repo is no party of the contract, which has begun otherwise here")


def _no_party(version: int) -> Refused:
    return Refused(f"its repo is no party of version {version}")


def _before(fact: VersionFact) -> str:
    return f"{fact.version - 1}/{fact.parent}"


def _place(fact: Fact) -> str:
    return f"{fact.version}/{fact.digest}"
