"""Honest nodes and one traitor on a network that a seed plays: `await World(folder, seed).play()`.

Time is simulated, in microseconds; ids are counted; the nodes' code, their files and their
signatures are real. So a seed says what happens, and it happens the same way each time.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import orjson

from peers.errors import NotConnected
from server.domain.errors import Refusal
from tests.acceptance.shapes import encode
from tests.byzantine.honest import DAY, Honest
from tests.byzantine.mutation import LEFT_OUT
from tests.byzantine.seeds import CONTENT, Ground, project_sync, sealed
from tests.byzantine.traitor import CHANGES, NAME, OTHER, Traitor
from tests.support.mesh import REPOS, agent_of

SECOND = 1_000_000
START = 1_800_000_000 * SECOND
NAMES = ("alpha", "beta", "gamma")
EVENTS = 60
OTHERS = ("api_endpoint", "N")
"""What contracts but the first are called."""
OURS = (-32000, -32603)
JUMPS = [3 * SECOND, 120 * SECOND, 3_600 * SECOND, 2 * DAY, 400 * DAY, 1_200 * DAY]
"""By how much a clock is set wrong, in either direction."""
ROUNDS = 30
"""Within how many rounds of comparing nodes are equal."""
ACTS_LEFT_OUT: dict[str, str] = {}
"""Acts that are not played, each with the fault that it waits for."""


@dataclass
class Written:
    """What honest nodes wrote."""

    packets: dict[str, str] = field(default_factory=dict)
    facts: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """By contract, kind and key: the author's last word."""
    files: set[str] = field(default_factory=set)


class World:
    """A story of one seed."""

    def __init__(
        self,
        folder: Path,
        seed: object,
        *,
        events: int = EVENTS,
        acts_left_out: dict[str, str] = ACTS_LEFT_OUT,
        left_out: dict[str, str] = LEFT_OUT,
    ) -> None:
        self.chance = Random(str(seed))
        self.time = START
        self.nodes = {name: Honest(folder, name, self.now, self.carry) for name in NAMES}
        self.traitor = Traitor(Random(f"{seed} traitor"), left_out)
        self.written = Written()
        self.log: list[str] = []
        """What happened, one line for each event."""
        self.acts = Counter[str]()
        self._events = events
        self._sides = dict.fromkeys([*NAMES, NAME], 0)
        self._acts = {name: act for name, act in ACTS.items() if name not in acts_left_out}
        self._ids = 0
        self._is_calm = True
        """Nothing is lost on the way: while the story begins, and once it is over."""
        self._is_over = False

    def now(self) -> int:
        return self.time

    def next_id(self) -> UUID:
        """Instead of random ones: in the order of time, as those of version 7."""
        self._ids += 1
        return UUID(int=(self._ids << 80) | (7 << 76) | (2 << 62) | self._ids)

    async def play(self) -> None:
        """The story, from the first meeting until the honest nodes are equal. AssertionError with
        the last events when they don't become so, or have lost something."""
        await self._begin()
        try:
            self._is_calm = False
            for _ in range(self._events):
                self.time += self.chance.randrange(20 * SECOND)
                name = self.chance.choice(list(self._acts))
                self.acts[name] += 1
                self.log.append(f"{(self.time - START) / SECOND:.0f} s {name}")
                await self._acts[name](self)
                for node in self.nodes.values():
                    node.judge()
            await self._heal()
            self._judge()
        finally:
            for node in self.nodes.values():
                await node.end()

    async def _begin(self) -> None:
        members = [*NAMES, NAME]
        for node in self.nodes.values():
            await node.begin([one for one in members if one != node.name])
        alpha = self.nodes["alpha"]
        repos = [*REPOS, {"name": NAME, "role": "service", "language": "go"}]
        made = await alpha.call("cacp/project/create", name="P", objective="o", repos=repos)
        self.project = made["projectId"]
        own = {"name": "Own", "objective": "o", "repos": REPOS}
        self.closed = (await alpha.call("cacp/project/create", **own))["projectId"]
        await self._tell_all()
        for node in self.nodes.values():
            await node.call("cacp/project/join", projectId=self.project, repoName=node.name)
        await self._tell_all()
        contract = await alpha.call(
            "cacp/contract/propose",
            projectId=self.project,
            type="api_endpoint",
            name="Get",
            content=CONTENT,
        )
        self.contracts = [contract["contractId"]]
        self.added: list[str] = []
        await self._tell_all()
        for repo in (NAME, OTHER):
            at = replace(self.ground, name=repo)
            joins = self.traitor._request("cacp/project/sync", sealed(at, project_sync(at)))
            for node in self.nodes.values():
                await self._send(node, joins)
        self._keep(alpha, self.contracts[0])

    # --- the network --------------------------------------------------------------------------

    async def carry(self, source: str, target: str, body: bytes) -> bytes:
        """Bring a body to a member, if it can be reached and nothing is lost on the way."""
        if self._sides[source] != self._sides.get(target) or self._lost():
            raise NotConnected("can't be reached")
        if target == NAME:
            if self._is_over:
                raise NotConnected("can't be reached")
            answer = self.traitor.answer(self.ground, body)
        else:
            answer = await self.nodes[target].answer(source, body)
        if self._lost():
            raise NotConnected("closed the connection")
        return answer

    def _lost(self) -> bool:
        return not self._is_calm and self.chance.random() < 0.05

    async def _send(self, node: Honest, message: dict[str, Any] | None) -> None:
        """Have the traitor say something to a node, which is at fault in nothing then."""
        if message is None or self._sides[node.name] != self._sides[NAME]:
            return
        body = encode(message)
        answer = orjson.loads(await node.answer(NAME, body) or b"{}")
        error = answer.get("error") or {}
        assert error.get("code") not in OURS, f"{error}: {body[:3_000]!r}"

    async def _tell_all(self) -> None:
        for node in self.nodes.values():
            for other in NAMES:
                if other != node.name:
                    await node.tell(other)

    @property
    def ground(self) -> Ground:
        return Ground(
            now=self.time,
            node=agent_of("alpha"),
            member=self.traitor.agent,
            name=NAME,
            key=self.traitor.key,
            project=self.project,
            contract=self.contracts[0] if hasattr(self, "contracts") else "none",
            file="none",
            handoff="none",
            reader=agent_of("alpha"),
            writer=self.traitor.agent,
            id=self.traitor.fresh_id,
        )

    # --- what happens -------------------------------------------------------------------------

    def _anyone(self) -> Honest:
        return self.nodes[self.chance.choice(NAMES)]

    async def _share(self) -> None:
        node = self._anyone()
        content = {"number": self.chance.randrange(1_000)}
        said = await node.call(
            "cacp/context/share", projectId=self.project, type="decision", content=content
        )
        self.written.packets[said["packetId"]] = orjson.dumps(content).decode()

    async def _propose(self) -> None:
        node = self._anyone()
        content = {"path": f"/{self.chance.randrange(5)}"}
        made = await node.call(
            "cacp/contract/propose",
            projectId=self.project,
            type="api_endpoint",
            name="N",
            content=content,
        )
        self.contracts.append(made["contractId"])
        self._keep(node, made["contractId"])

    async def _respond(self) -> None:
        node, contract = self._anyone(), self.chance.choice(self.contracts)
        at = {"projectId": self.project, "contractId": contract}
        action = self.chance.choice(["agree", "request_change", "reject"])
        try:
            if self.chance.random() < 0.3:
                content = {"path": f"/{self.chance.randrange(5)}"}
                await node.call("cacp/contract/update", **at, content=content)
            else:
                await node.call("cacp/contract/respond", **at, action=action)
        except Refusal:
            return
        self._keep(node, contract)

    async def _file(self) -> None:
        node = self._anyone()
        given = {"name": "a.json", "content": "e30="}
        made = await node.call("cacp/file/share", projectId=self.project, file=given)
        self.written.files.add(made["fileId"])

    async def _says_how_far(self) -> None:
        status = self.chance.choice(["planning", "implementing", "integrating", "complete"])
        await self._anyone().call(
            "cacp/project/updateStatus", projectId=self.project, status=status
        )

    async def _adds(self) -> None:
        """A repo, and holds it."""
        node, name = self._anyone(), f"tools-{len(self.added)}"
        repo = {"name": name, "role": "service", "language": "go"}
        await node.call("cacp/project/addRepo", projectId=self.project, repo=repo)
        await node.call("cacp/project/join", projectId=self.project, repoName=name)
        self.added.append(name)

    async def _tell(self) -> None:
        node = self._anyone()
        for other in (*NAMES, NAME):
            if other != node.name:
                await node.tell(other)

    async def _compare(self) -> None:
        node = self._anyone()
        other = self.chance.choice([one for one in (*NAMES, NAME) if one != node.name])
        await node.compare(other)
        await node.take_due()

    async def _part(self) -> None:
        self._sides = {name: self.chance.randrange(2) for name in self._sides}

    async def _meet(self) -> None:
        self._sides = dict.fromkeys(self._sides, 0)

    async def _restart(self) -> None:
        await self._anyone().restart()

    async def _set_clock(self) -> None:
        self._anyone().skew = self.chance.choice(JUMPS) * self.chance.choice([1, -1])

    async def _set_right(self) -> None:
        for node in self.nodes.values():
            node.skew = 0

    async def _said(self) -> None:
        await self._send(self._anyone(), self.traitor.honest(self.ground))

    async def _mutated(self) -> None:
        for _ in range(4):
            await self._send(self._anyone(), self.traitor.mutated(self.ground))
            self.log[-1] += f" {self.traitor.mutator.done}"

    async def _equivocates(self, method: str) -> None:
        one, other = self.traitor.two_contents(self.ground, method)
        first, second = self.chance.sample(NAMES, 2)
        await self._send(self.nodes[first], one)
        await self._send(self.nodes[second], other)

    async def _says_of_other_parties(self) -> None:
        """To each node one of two versions first, and what follows on one of them."""
        one, other, later = self.traitor.of_other_parties(self.ground)
        orders = [(one, later, other), (other, later), (later, other, one), (one, later)]
        for name in NAMES:
            for message in self.chance.choice(orders):
                await self._send(self.nodes[name], message)

    async def _begins(self) -> None:
        """A contract under the id of one that a node has just begun, before that tells of it."""
        await self._propose()
        said = self.traitor.begins(replace(self.ground, contract=self.contracts[-1]))
        await self._send(self._anyone(), said)

    async def _rewrites(self) -> None:
        """The header of a project that it is no member of."""
        at = replace(self.ground, project=self.closed)
        await self._send(self._anyone(), self.traitor.rewritten(at))

    async def _redescribes(self) -> None:
        """Repos of others, where it is a member and where it is none."""
        project = self.chance.choice([self.project, self.closed])
        at = replace(self.ground, project=project)
        names = [*NAMES, *(self.added if project == self.project else [])]
        await self._send(self._anyone(), self.traitor.redescribed(at, names))

    async def _renames(self) -> None:
        contract = self.chance.choice(self.contracts)
        await self._send(self._anyone(), self.traitor.renamed(self.ground, contract))

    async def _again(self) -> None:
        for _ in range(4):
            await self._send(self._anyone(), self.traitor.again())

    async def _altered(self) -> None:
        for _ in range(4):
            await self._send(self._anyone(), self.traitor.altered())

    # --- the end ------------------------------------------------------------------------------

    async def _heal(self) -> None:
        """All meet, every clock is right, and what was stamped ahead comes due."""
        self._is_calm = self._is_over = True
        self._sides = dict.fromkeys(self._sides, 0)
        for node in self.nodes.values():
            node.skew = 0
        self.time += max(JUMPS) + 3 * DAY
        for _ in range(ROUNDS):
            self.time += 61 * SECOND
            await self._tell_all()
            for node in self.nodes.values():
                for other in NAMES:
                    if other != node.name:
                        await node.compare(other)
                node.judge()
                await node.take_due()
            if len({await node.count() for node in self.nodes.values()}) == 1:
                return

    def _keep(self, node: Honest, contract: str) -> None:
        """Note what a node itself says of a contract."""
        rows = node.query("SELECT kind, key, body FROM facts WHERE contract_id = ?", contract)
        for kind, key, body in rows:
            if orjson.loads(body).get("agent_id") == node.agent:
                self.written.facts[contract, kind, key] = _words(body)

    def _judge(self) -> None:
        story = "\n".join(self.log[-25:])
        states = {name: orjson.loads(node.state()) for name, node in self.nodes.items()}
        for name in NAMES[1:]:
            for table, rows in states["alpha"].items():
                differ = set(rows) ^ set(states[name][table])
                assert not differ, f"{table} of alpha and {name}: {sorted(differ)[:6]}\n{story}"
        for name, node in self.nodes.items():
            self._nothing_is_lost(name, node, story)
            [header] = node.query(
                "SELECT name, objective, status, agreement_policy FROM projects "
                "WHERE project_id = ?",
                self.closed,
            )
            assert header == ("Own", "o", "planning", "any"), f"{name} holds {header}\n{story}"
            self._nothing_is_renamed(name, node, story)

    def _nothing_is_renamed(self, name: str, node: Honest, story: str) -> None:
        """Of what honest nodes hold or began."""
        repos = node.query("SELECT name, role FROM repos WHERE project_id IN (?, ?)", *self._own)
        wrong = [one for one in repos if one[0] != NAME and one[1] != "service"]
        assert len(repos) >= 7 + len(self.added), f"{name} lacks repos: {repos}\n{story}"
        contracts = node.query("SELECT contract_id, type, name FROM contracts")
        wrong += [
            one
            for one in contracts
            if one[0] in self.contracts and one[1:] not in (("api_endpoint", "Get"), OTHERS)
        ]
        assert wrong == [], f"{name} holds {wrong}\n{story}"

    @property
    def _own(self) -> tuple[str, str]:
        return self.project, self.closed

    def _nothing_is_lost(self, name: str, node: Honest, story: str) -> None:
        packets = dict(node.query("SELECT packet_id, document FROM packets"))
        for packet, content in self.written.packets.items():
            assert packet in packets, f"{name} lacks packet {packet}\n{story}"
            assert orjson.loads(packets[packet])["content"] == orjson.loads(content)
        rows = node.query("SELECT contract_id, kind, key, body FROM facts")
        facts = {(contract, kind, key): body for contract, kind, key, body in rows}
        for fact, words in self.written.facts.items():
            assert fact in facts, f"{name} lacks {fact}\n{story}"
            if fact[1] == "response":
                assert _words(facts[fact]) == words, f"{name} has another {fact}\n{story}"
        files = {file for (file,) in node.query("SELECT file_id FROM files")}
        assert self.written.files <= files, f"{name} lacks files\n{story}"


def _words(body: str) -> str:
    """What a fact says, without the time."""
    found = orjson.loads(body)
    return orjson.dumps({name: one for name, one in found.items() if name != "stamp"}).decode()


Act = Callable[[World], Awaitable[None]]
ACTS: Mapping[str, Act] = {
    "shares a packet": World._share,
    "proposes": World._propose,
    "responds": World._respond,
    "shares a file": World._file,
    "says how far a project is": World._says_how_far,
    "adds a repo": World._adds,
    "tells": World._tell,
    "compares": World._compare,
    "compares once more": World._compare,
    "parts": World._part,
    "meets": World._meet,
    "restarts": World._restart,
    "sets a clock": World._set_clock,
    "sets clocks right": World._set_right,
    "traitor says": World._said,
    "traitor mutates": World._mutated,
    "traitor says again": World._again,
    "traitor alters": World._altered,
    "traitor rewrites others' project": World._rewrites,
    "traitor describes others' repos": World._redescribes,
    "traitor renames others' contracts": World._renames,
    "traitor says one content of other parties": World._says_of_other_parties,
    "traitor begins others' contract": World._begins,
} | {
    f"traitor says two things by {method}": partial(World._equivocates, method=method)
    for method in CHANGES
}
