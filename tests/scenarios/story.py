"""Stories of a mesh as text: what each node does, and what every node then knows of one contract.

    nodes: alpha beta+1h gamma    the first has proposed /a to all; beta's clock is an hour ahead
    cut: alpha | beta gamma       who can reach whom from now on; `heal` ends it
    alpha: update /b              a step of its agent; it reaches all that can be reached
    meet                          each compares with each, and takes what it lacks
    wait: 2h
    clock: beta+0s                somebody sets a machine's clock

It plays on the pure core: the join, the clock and the digests (`simulation.SimulatedNode`).
"""

import re
from collections.abc import Callable, Iterator

from schemas.facts import (
    Fact,
    ImplementationFact,
    ResponseFact,
    VerificationFact,
    VersionFact,
)
from server.domain import contract as domain
from server.domain.contract_steps import Party
from server.domain.errors import Refusal
from tests.scenarios.simulation import HOUR, SECOND, START, SimulatedNode
from tests.server.domain.histories import Step, facts_of, propose

UNITS = {"s": SECOND, "m": 60 * SECOND, "h": HOUR}
MEETINGS = 3
"""Comparisons of all with all after which nothing more can travel between three nodes."""


class Story:
    """One script, played line by line."""

    def __init__(self, script: str) -> None:
        self._lines = [line for line in script.splitlines() if line and line[0] != "#"]
        self._time = START
        self._nodes: dict[str, SimulatedNode] = {}
        self._sides: list[set[str]] = []
        self._shown: dict[str, str] = {}

    def play(self) -> Iterator[str]:
        """Each line of the script, and under it what changed; at the end whether all are equal."""
        for step in self._lines:
            yield step
            subject, _, rest = step.partition(":")
            yield from (f"  {line}" for line in self._do(subject, rest.strip()))
            yield from self._changes()
        digests = {node.digest() for node in self._nodes.values()}
        yield "all are equal" if len(digests) == 1 else "they differ"

    def _do(self, subject: str, rest: str) -> list[str]:
        steps: dict[str, Callable[[str], None]] = {
            "nodes": self._begin,
            "cut": self._cut,
            "heal": self._cut,
            "meet": self._meet,
            "wait": self._wait,
            "clock": self._set_clock,
        }
        if subject not in steps:
            return self._write(subject, *rest.split())
        steps[subject](rest)
        return []

    def _begin(self, names: str) -> None:
        skews = dict(map(_skew, names.split()))
        parties = {name: Party(name, f"aid://example.com/{name}@1") for name in skews}
        first = propose(*parties.values(), stamp=START - HOUR)
        for name, skew in skews.items():
            node = SimulatedNode(parties[name], skew, len(skews), dict(first))
            self._nodes[name] = node
        self._cut("")

    def _cut(self, names: str) -> None:
        sides = [set(side.split()) for side in names.split("|")] if names else [set(self._nodes)]
        self._sides = sides

    def _wait(self, span: str) -> None:
        self._time += _span(span)

    def _set_clock(self, given: str) -> None:
        name, skew = _skew(given)
        self._nodes[name].skew = skew

    def _meet(self, _: str) -> None:
        for _turn in range(MEETINGS):
            self._time += 30 * SECOND
            for name, node in self._nodes.items():
                for other in self._reached(name):
                    node.measure(other, self._time)
                    node.hear([], self._time)
                    if other.sends and node.digest() != other.digest():
                        node.hear(list(other.facts.values()), self._time)

    def _write(self, name: str, action: str, path: str = "") -> list[str]:
        node = self._nodes[name]
        self._time += SECOND
        step = Step(0, node.who, action, {"path": path})
        try:
            facts_of(node.facts, step, self._time)
        except Refusal as refusal:
            return [f"refused: {refusal}"]
        written = node.write(step, self._time)
        for other in self._reached(name) if node.sends else ():
            other.hear(written, self._time)
        return []

    def _reached(self, name: str) -> list[SimulatedNode]:
        side = next(side for side in self._sides if name in side)
        return [node for other, node in self._nodes.items() if other in side and other != name]

    def _changes(self) -> Iterator[str]:
        known = {name: _known(node) for name, node in self._nodes.items()}
        news = {name: text for name, text in known.items() if text != self._shown.get(name)}
        self._shown = known
        for text in dict.fromkeys(news.values()):
            who = [name for name in news if news[name] == text]
            yield f"  {'all' if len(who) == len(known) else ' '.join(who)}: {text}"


def _known(node: SimulatedNode) -> str:
    """What a node knows of the contract, on one line: of the current version, in its round."""
    current = domain.current_of(node.facts)
    number = domain.round_of(node.facts, current)
    parts = [f"{_version(current)} is {domain.status_of(node.facts)}"]
    if number > 1:
        parts.append(f"round {number}")
    place = current.version, current.digest
    about = [fact for fact in node.facts.values() if (fact.version, fact.digest) == place]
    parts += sorted(filter(None, (_word(fact, number) for fact in about)))
    lost = domain.conflicts_of(node.facts)
    if lost:
        parts.append(f"conflict with {', '.join(map(_version, lost))}")
    if node.aside:
        parts.append(f"{len(node.aside)} deferred")
    return "; ".join(parts)


def _version(fact: VersionFact) -> str:
    return f"v{fact.version} {fact.content['path']} of {fact.repo_id}"


def _word(fact: Fact, number: int) -> str | None:
    match fact:
        case ResponseFact():
            return f"{fact.repo_id} {fact.action}"
        case ImplementationFact(round=at) if at == number:
            return f"{fact.repo_id} {fact.status}"
        case VerificationFact(round=at) if at == number:
            return f"{fact.repo_id} {fact.result}"
    return None


def _skew(given: str) -> tuple[str, int]:
    """`beta+1h` is beta, an hour ahead."""
    match = re.fullmatch(r"(\w+)(?:([+-])(\w+))?", given)
    assert match is not None, given
    name, sign, span = match.groups()
    ahead = _span(span) if span else 0
    return name, -ahead if sign == "-" else ahead


def _span(given: str) -> int:
    return int(given[:-1]) * UNITS[given[-1]]
