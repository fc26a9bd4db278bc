"""Nodes on the pure core: the join, the clock and the digests, on a network that a seed plays.

Time is simulated, in microseconds. Messages are lost, come twice and out of order; the network
falls apart and heals; clocks are wrong by up to an hour, and are set right while all of it goes on.
"""

import heapq
from dataclasses import dataclass, field, replace
from random import Random

import orjson

from peers import clock, digest
from peers.clock import ClockVerdict, Reading
from peers.digest import Name
from schemas.base import JsonObject
from schemas.facts import Fact
from server.domain import contract as domain
from server.domain.contract import FactKey
from server.domain.contract_steps import Party
from server.domain.errors import Refusal
from tests.server.domain.histories import ACTIONS, CONTENTS, Step, facts_of, propose

SECOND = 1_000_000
HOUR = 3_600 * SECOND
LIMIT = clock.FUTURE_LIMIT
START = 1_000 * HOUR
CONTRACT = Name("contract", "p", "c")
CONTENTS_APART: tuple[JsonObject, ...] = (*CONTENTS, {"path": "/d"}, {"path": "/e"})


@dataclass
class SimulatedNode:
    """A node: its facts, a clock that is wrong by `skew`, and what is deferred."""

    who: Party
    skew: int
    clocks: int
    facts: dict[FactKey, Fact] = field(default_factory=dict)
    aside: list[Fact] = field(default_factory=list)
    readings: dict[str, Reading] = field(default_factory=dict)
    last: int = 0
    written: list[Fact] = field(default_factory=list)
    begun: int | None = None
    sends: bool = False
    """Nothing goes out before the clocks were compared."""

    def verdict(self, time: int) -> ClockVerdict:
        found = {name: one.at(time, self.skew) for name, one in self.readings.items()}
        known = {name: one for name, one in found.items() if one is not None}
        return clock.reckon(known, self.clocks)

    def now(self, time: int) -> int:
        return time + self.skew + self.verdict(time).correction

    def write(self, step: Step, time: int) -> list[Fact]:
        """The facts of a step; none when it is refused."""
        self.last = clock.tick(self.last, self.now(time))
        try:
            made = facts_of(self.facts, step, self.last)
        except Refusal:
            return []
        self.facts = domain.join(self.facts, made)
        self.written += made
        return made

    def hear(self, facts: list[Fact], time: int) -> None:
        """Take in what is due, defer the rest."""
        every, self.aside = [*self.aside, *facts], []
        now = self.now(time)
        for fact in every:
            known = self.facts.get((fact.kind, fact.key))
            if known is not None and domain.winner(known, fact) == known:
                continue
            if not clock.is_due(fact.stamp, now, LIMIT):
                if fact not in self.aside:
                    self.aside.append(fact)
                continue
            self.facts = domain.join(self.facts, [fact])
            if not clock.is_ahead(fact.stamp, now):
                self.last = max(self.last, fact.stamp)

    def measure(self, other: "SimulatedNode", time: int) -> None:
        """Read another's clock; once that is enough, send, and stamp anew what nobody has yet."""
        reading = Reading(time, time + other.skew, time)
        self.readings[other.who.agent_id] = reading
        self.begun = time if self.begun is None else self.begun
        if self.sends or not self.verdict(time).is_settled(time - self.begun):
            return
        self.sends = True
        now = self.now(time)
        stamps = [fact.stamp for fact in self.written]
        floor = max((stamp for stamp in stamps if stamp <= now), default=0)
        shift = clock.shift_of(max(stamps, default=0), floor, now)
        if shift is not None:
            for fact in self.written:
                if self.facts[fact.kind, fact.key] == fact:
                    moved = replace(fact, stamp=shift.move(fact.stamp))
                    self.facts[fact.kind, fact.key] = moved
            self.last = now

    def digest(self) -> str:
        return digest.leaf(CONTRACT, [orjson.dumps(fact) for fact in self.facts.values()])


class Simulation:
    """A history of writes at every node, on a bad network, that a seed decides."""

    def __init__(
        self, seed: int, skews: tuple[int, ...] = (0, 0, 0, 0, 0), *, line: bool = False
    ) -> None:
        """`line`: each node knows only those beside it."""
        self.chance = Random(seed)
        parties = [Party(f"repo{n}", f"aid://example.com/n{n}@1") for n in range(len(skews))]
        first = propose(*parties, stamp=START - 2 * HOUR)
        every = range(len(skews))
        self._links = {
            (one, other)
            for one in every
            for other in every
            if abs(one - other) in ((0, 1) if line else every)
        }
        self.nodes = [
            SimulatedNode(who, skew, self._clocks(place), dict(first))
            for place, (who, skew) in enumerate(zip(parties, skews, strict=True))
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

    def leave(self, place: int) -> None:
        """A node ends, for good as far as the others know."""
        self._links -= {link for link in self._links if place in link}

    def join(self, *known: int) -> SimulatedNode:
        """A node that holds nothing yet, and knows these."""
        place = len(self.nodes)
        who = Party(f"repo{place}", f"aid://example.com/n{place}@1")
        self._links |= {(place, place)} | {(place, one) for one in known}
        self._links |= {(one, place) for one in known}
        self.nodes.append(SimulatedNode(who, 0, self._clocks(place)))
        self._sides.append(0)
        for one in known:
            self.nodes[one].clocks += 1
        return self.nodes[-1]

    def _clocks(self, place: int) -> int:
        return sum(one == place for one, _ in self._links)

    def apart(self, place: int, steps: int) -> None:
        """One node works alone; nobody else does anything."""
        for _ in range(steps):
            self.time += self.chance.randrange(5 * SECOND)
            self._write(place, told=False)

    def set_clock(self, place: int, skew: int) -> None:
        """Somebody sets a machine's clock while its node runs."""
        self.nodes[place].skew = skew

    def heal(self, step: int = 30 * SECOND) -> None:
        """The partition ends, and everyone compares a few times, in no more than minutes."""
        self._sides = [0] * len(self.nodes)
        for _ in range(len(self.nodes) + 2):
            self.time += step
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
        for far, other in enumerate(self.nodes):
            if other is not node and (place, far) in self._links:
                other.hear(made, self.time)
        return made

    def _write(self, place: int, *, told: bool = True) -> None:
        node = self.nodes[place]
        step = Step(place, node.who, self.chance.choice(ACTIONS), self._content())
        made = node.write(step, self.time)
        self.written += made
        for other in range(len(self.nodes)) if told and node.sends else ():
            # Lost one time in four, twice one time in eight.
            for _ in range(self.chance.choice([0, 0, 1, 1, 1, 1, 1, 2]) if made else 0):
                self._sent += 1
                arrival = self.time + self.chance.randrange(30 * SECOND)
                heapq.heappush(self._wire, (arrival, self._sent, place, other, made))

    def _deliver(self) -> None:
        while self._wire and self._wire[0][0] <= self.time:
            _, _, source, target, facts = heapq.heappop(self._wire)
            meet = self._sides[source] == self._sides[target]
            if meet and source != target and (source, target) in self._links:
                self.nodes[target].hear(facts, self.time)

    def _compare(self, place: int, other: int) -> None:
        """Anti-entropy: one node reads the other's clock, and fetches what it has."""
        if self._sides[place] != self._sides[other] or (place, other) not in self._links:
            return
        ours, theirs = self.nodes[place], self.nodes[other]
        ours.measure(theirs, self.time)
        ours.hear([], self.time)
        if theirs.sends and ours.digest() != theirs.digest():
            ours.hear(list(theirs.facts.values()), self.time)

    def _content(self) -> JsonObject:
        return self.chance.choice(CONTENTS_APART)
