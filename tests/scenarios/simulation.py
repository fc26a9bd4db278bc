"""Five nodes on the pure core: the join, the clock and the digests, on a network that a seed plays.

Time is simulated, in microseconds. Messages are lost, come twice and out of order; the network
falls apart and heals; clocks are wrong by up to an hour.
"""

import heapq
from dataclasses import dataclass, field
from random import Random

import orjson

from peers import clock, digest
from peers.digest import Name
from schemas.base import JsonObject
from schemas.facts import Fact
from server.domain import contract as domain
from server.domain.contract import FactKey, Party
from server.domain.errors import Refusal
from tests.server.domain.histories import ACTIONS, CONTENTS, Step, facts_of, propose

SECOND = 1_000_000
HOUR = 3_600 * SECOND
LIMIT = 300 * SECOND
START = 1_000 * HOUR
CONTRACT = Name("contract", "p", "c")
CONTENTS_APART: tuple[JsonObject, ...] = (*CONTENTS, {"path": "/d"}, {"path": "/e"})


@dataclass
class SimulatedNode:
    """A node: its facts, a clock that is wrong by `skew`, and what is put aside."""

    who: Party
    skew: int
    facts: dict[FactKey, Fact] = field(default_factory=dict)
    aside: list[Fact] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    last: int = 0

    def machine_time(self, time: int) -> int:
        return time + self.skew

    def now(self, time: int) -> int:
        return self.machine_time(time) + clock.correction(self.offsets)

    def write(self, step: Step, time: int) -> list[Fact]:
        """The facts of a step; none when it is refused."""
        self.last = clock.tick(self.last, self.now(time))
        try:
            made = facts_of(self.facts, step, self.last)
        except Refusal:
            return []
        self.facts = domain.join(self.facts, made)
        return made

    def hear(self, facts: list[Fact], time: int) -> None:
        """Take in what is due, put the rest aside."""
        every, self.aside = [*self.aside, *facts], []
        for fact in every:
            if not clock.is_due(fact.stamp, self.now(time), LIMIT):
                if fact not in self.aside:
                    self.aside.append(fact)
                continue
            self.facts = domain.join(self.facts, [fact])
            self.last = max(self.last, fact.stamp)

    def digest(self) -> str:
        return digest.leaf(CONTRACT, [orjson.dumps(fact) for fact in self.facts.values()])


class Simulation:
    """A history of writes at every node, on a bad network, that a seed decides."""

    def __init__(self, seed: int, skews: tuple[int, ...] = (0, 0, 0, 0, 0)) -> None:
        self.chance = Random(seed)
        parties = [Party(f"repo{n}", f"aid://example.com/n{n}@1") for n in range(len(skews))]
        first = propose(*parties, stamp=START - 2 * HOUR)
        self.nodes = [
            SimulatedNode(who, skew, dict(first)) for who, skew in zip(parties, skews, strict=True)
        ]
        self.time = START
        self.written: list[Fact] = []
        self._sides = [0] * len(self.nodes)
        self._wire: list[tuple[int, int, int, int, list[Fact]]] = []
        self._sent = 0

    def run(self, steps: int) -> None:
        """Writes, at random nodes, while the network does what it does."""
        for _ in range(steps):
            self.time += self.chance.randrange(5 * SECOND)
            if self.chance.random() < 0.1:
                self._sides = [self.chance.randrange(3) for _ in self.nodes]
            self._deliver()
            if self.chance.random() < 0.2:
                self._compare(*self.chance.sample(range(len(self.nodes)), 2))
            self._write(self.chance.randrange(len(self.nodes)))

    def heal(self) -> None:
        """The partition ends, clocks come to what was stamped ahead, everyone compares."""
        self._sides = [0] * len(self.nodes)
        for _ in range(len(self.nodes) + 1):
            self.time += HOUR
            self._deliver()
            for one in range(len(self.nodes)):
                for other in range(len(self.nodes)):
                    if one != other:
                        self._compare(one, other)

    def act(self, place: int, action: str) -> list[Fact]:
        """A write at one node that everyone hears of."""
        node = self.nodes[place]
        made = node.write(Step(place, node.who, action, self._content()), self.time)
        self.written += made
        for other in self.nodes:
            if other is not node:
                other.hear(made, self.time)
        return made

    def _write(self, place: int) -> None:
        node = self.nodes[place]
        step = Step(place, node.who, self.chance.choice(ACTIONS), self._content())
        made = node.write(step, self.time)
        self.written += made
        for other in range(len(self.nodes)):
            # Lost one time in four, twice one time in eight.
            for _ in range(self.chance.choice([0, 0, 1, 1, 1, 1, 1, 2]) if made else 0):
                self._sent += 1
                arrival = self.time + self.chance.randrange(30 * SECOND)
                heapq.heappush(self._wire, (arrival, self._sent, place, other, made))

    def _deliver(self) -> None:
        while self._wire and self._wire[0][0] <= self.time:
            _, _, source, target, facts = heapq.heappop(self._wire)
            if self._sides[source] == self._sides[target] and source != target:
                self.nodes[target].hear(facts, self.time)

    def _compare(self, place: int, other: int) -> None:
        """Anti-entropy: one node fetches what the other has; both clocks are seen."""
        if self._sides[place] != self._sides[other]:
            return
        ours, theirs = self.nodes[place], self.nodes[other]
        ours.offsets[theirs.who.agent_id] = theirs.skew - ours.skew
        ours.hear([], self.time)
        if ours.digest() != theirs.digest():
            ours.hear(list(theirs.facts.values()), self.time)

    def _content(self) -> JsonObject:
        return self.chance.choice(CONTENTS_APART)
