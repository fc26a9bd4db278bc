"""What clients do: they negotiate contracts, hand tasks over and write to each other, all at the
same few, and several at a time at each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from uuid_utils import uuid7

from tests.replicas.calls import Client
from tests.replicas.models import Refused
from tests.support.in_process_node import package

REPOS = ("api", "app", "web")
BOXES = ("ines", "jana")
SENDER = "otto"
RECEIVERS = ("paul", "rosa")
AGENTS = (*REPOS, *BOXES, SENDER, *RECEIVERS)
WEIGHTS = {"contract": 5, "task": 3, "mail": 3}
CONTRACTS_OPEN = 2
"""How many contracts are worked on at the same time."""


@dataclass
class World:
    """What clients know of what they work on."""

    keys: dict[str, str]
    """By the names of the agents, and of the repos, which each has."""
    projects: list[str]
    contracts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the name of its first content: its project and its id."""
    versions: dict[str, int] = field(default_factory=dict)
    """The version of each that was last heard of."""
    handoffs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By id: its task and its receiver."""
    tasks: int = 0
    messages: dict[str, dict[str, str]] = field(default_factory=lambda: {box: {} for box in BOXES})
    """What each box was seen to hold: ids by text."""


def agent_id(name: str) -> str:
    return f"aid://example.com/{name}@1.0.0"


class Worker:
    """Does one thing after the other, as its client's seed says."""

    def __init__(self, client: Client, world: World, kinds: Sequence[str] = tuple(WEIGHTS)) -> None:
        self._client = client
        self._world = world
        self._kinds = kinds
        self._made = 0

    @property
    def _dice(self) -> Random:
        return self._client.dice

    async def step(self) -> None:
        do = {"contract": self.contract, "task": self.task, "mail": self.mail}
        weights = [WEIGHTS[kind] for kind in self._kinds]
        await do[self._dice.choices(self._kinds, weights)[0]]()

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._client.name}-{self._made}"

    # --- contracts --------------------------------------------------------------------------------

    async def contract(self) -> None:
        world, dice = self._world, self._dice
        if len(world.contracts) < CONTRACTS_OPEN or dice.random() < 0.05:
            await self.propose()
            return
        name = dice.choice(list(world.contracts)[-CONTRACTS_OPEN:])
        step = dice.choices((self.get, self.update, self.respond), (4, 3, 3))[0]
        await step(name)

    async def propose(self) -> None:
        name, repo = self._name("contract"), self._dice.choice(REPOS)
        project = self._dice.choice(self._world.projects)
        params = {"projectId": project, "type": "custom", "name": "n", "content": {"name": name}}
        done = await self._client.perform(
            f"contract:{name}",
            "propose",
            (name, repo),
            "cacp/contract/propose",
            params,
            lambda result: (result["version"], result["status"]),
            key=self._world.keys[repo],
            effect=name,
            persists=True,
        )
        # It is refused where a planted fault has lost the project.
        if isinstance(done, tuple) and not isinstance(done, Refused):
            self._world.contracts[name] = (project, done[1]["contractId"])
            self._world.versions[name] = 1

    async def get(self, name: str, *, persists: bool = False) -> None:
        done = await self._client.perform(
            f"contract:{name}",
            "get",
            (),
            "cacp/contract/get",
            self._place(name),
            lambda result: (result["version"], result["content"]["name"], result["status"]),
            key=self._world.keys[self._dice.choice(REPOS)],
            persists=persists,
        )
        if isinstance(done, tuple) and not isinstance(done, Refused):
            self._world.versions[name] = done[1]["version"]

    async def update(self, name: str) -> None:
        content = self._name("content")
        params = {**self._place(name), "content": {"name": content}}
        await self._change(name, "update", content, params, effect=content)

    async def respond(self, name: str) -> None:
        action = self._dice.choices(("agree", "request_change", "reject"), (2, 4, 2))[0]
        await self._change(name, "respond", action, {**self._place(name), "action": action})

    async def _change(
        self, name: str, step: str, what: str, params: dict[str, Any], effect: str | None = None
    ) -> None:
        repo = self._dice.choice(REPOS)
        args: tuple[str | int, ...] = (what, repo)
        if self._dice.random() < 0.7:
            # By the version that somebody read; another one may have come since.
            version = self._world.versions[name]
            args, params = (*args, version), {**params, "version": version}
        state = "status" if step == "update" else "contractStatus"
        done = await self._client.perform(
            f"contract:{name}",
            step,
            args,
            f"cacp/contract/{step}",
            params,
            lambda result: (result["version"], result[state]),
            key=self._world.keys[repo],
            effect=effect,
        )
        if step == "update" and done is not None and not isinstance(done, Refused):
            self._world.versions[name] = max(self._world.versions[name], done[1]["version"])

    def _place(self, name: str) -> dict[str, Any]:
        project, contract = self._world.contracts[name]
        return {"projectId": project, "contractId": contract}

    # --- tasks ------------------------------------------------------------------------------------

    async def task(self) -> None:
        world, dice = self._world, self._dice
        if not world.handoffs or dice.random() < 0.35:
            if dice.random() < 0.25:
                world.tasks += 1
            await self.initiate(f"task-{world.tasks}", dice.choice(RECEIVERS))
            return
        handoff = dice.choice(list(world.handoffs)[-3:])
        steps = ("accept", "reject", "activate", "get")
        await self.handoff(handoff, dice.choices(steps, (3, 2, 1, 2))[0])

    async def initiate(self, task: str, receiver: str) -> None:
        handoff = str(uuid7())
        self._world.handoffs[handoff] = (task, receiver)
        params = {
            "action": "initiate",
            "to": agent_id(receiver),
            "reason": "End of shift",
            "package": {**package(task), "handoff_id": handoff},
        }
        await self._handoff(handoff, "initiate", params, SENDER, effect=f"{handoff}:propose")

    async def handoff(self, handoff: str, action: str, *, persists: bool = False) -> None:
        params: dict[str, Any] = {"action": action, "handoff_id": handoff}
        _, who = self._world.handoffs[handoff]
        if action == "reject":
            params |= {"code": "other", "detail": "no"}
        if action in ("reject", "get") and self._dice.random() < 0.5:
            who = SENDER
        effect = None if action == "get" else f"{handoff}:{action}"
        await self._handoff(handoff, action, params, who, effect=effect, persists=persists)

    async def _handoff(
        self,
        handoff: str,
        action: str,
        params: dict[str, Any],
        who: str,
        *,
        effect: str | None,
        persists: bool = False,
    ) -> None:
        task, _ = self._world.handoffs[handoff]
        await self._client.perform(
            f"task:{task}",
            action,
            (handoff,),
            "acp/handoff",
            params,
            lambda result: (result["handoff"]["status"],),
            key=self._world.keys[who],
            effect=effect,
            persists=persists,
        )

    # --- mail -------------------------------------------------------------------------------------

    async def mail(self) -> None:
        box = self._dice.choice(BOXES)
        known = list(self._world.messages[box])
        step = self._dice.choices(("send", "list", "ack"), (4, 2, 3))[0]
        if step == "send":
            await self.send(box)
        elif step == "list" or not known:
            await self.list(box)
        else:
            await self.ack(box, self._dice.choice(known[-4:]))

    async def send(self, box: str) -> None:
        text = self._name("message")
        params = {
            "to": [agent_id(box)],
            "type": "knowledge.push",
            "payload": {"summary": text},
            "client_id": text,
        }
        await self._client.perform(
            f"mailbox:{box}",
            "send",
            (text,),
            "acp/send",
            params,
            lambda _: ("sent",),
            key=self._world.keys[self._dice.choice(REPOS)],
            effect=f"{box}:{text}",
        )

    async def list(self, box: str, *, persists: bool = False) -> None:
        done = await self._client.perform(
            f"mailbox:{box}",
            "list",
            (),
            "acp/inbox",
            {"limit": 500},
            lambda result: tuple(one["payload"]["summary"] for one in result["messages"]),
            key=self._world.keys[box],
            persists=persists,
        )
        if done is not None and not isinstance(done, Refused):
            for one in done[1]["messages"]:
                self._world.messages[box][one["payload"]["summary"]] = one["id"]

    async def ack(self, box: str, text: str) -> None:
        await self._client.perform(
            f"mailbox:{box}",
            "ack",
            (text,),
            "acp/ack",
            {"message_ids": [self._world.messages[box][text]]},
            lambda result: ("acked" if result["acked"][0]["outcome"] in DONE else "unknown",),
            key=self._world.keys[box],
        )


DONE = ("read", "already")
