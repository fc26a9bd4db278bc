"""A member that says anything: to each node something else, what others said, what is not so."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import orjson

from peers.digest import Name, leaf
from server.domain.canonical import digest
from server.domain.identifiers import repo_id_for
from tests.byzantine.honest import decoded, key_of
from tests.byzantine.mutation import DAY, LEFT_OUT, Mutator
from tests.byzantine.seeds import CONTENT, SEEDS, Ground, contract_of, facts, sealed, version
from tests.support.mesh import agent_of

NAME = "mallory"
REWRITTEN = "rewritten"
"""What it calls what others have called otherwise."""
OTHER = "mallory-2"
"""Another repo that it holds."""
HEARD_MAX = 200
"""Messages of others that it keeps to say again."""
TOLD = sorted(name for name in SEEDS if name.startswith("cacp/") and name.endswith("/sync"))
"""Methods of messages that carry what nodes hold."""
CLOCKS = [0, 10_000_000, -3_600_000_000, DAY, -400 * DAY, 3_000 * DAY]
CHANGES: dict[str, Callable[[Any], tuple[Any, str]]] = {
    "cacp/project/sync": lambda said: (said["registers"], "name"),
    "cacp/contract/sync": lambda said: (said["facts"][0]["fact"], "note"),
    "cacp/context/sync": lambda said: (said["packet"], "content"),
    "cacp/file/sync": lambda said: (said["file"], "name"),
    "cacp/file/syncRequest": lambda said: (said["request"], "description"),
}
"""What a member may say in two ways under one name, and one stamp."""


class Traitor:
    """What it sends and answers, by a seeded chance."""

    def __init__(self, chance: Random, left_out: dict[str, str] = LEFT_OUT) -> None:
        self.chance = chance
        self.key = key_of(NAME)
        self.agent = agent_of(NAME)
        self.mutator = Mutator(chance.random(), {"agents": [agent_of("alpha")]}, left_out)
        self.heard: deque[dict[str, Any]] = deque(maxlen=HEARD_MAX)
        self._made = 0

    def fresh_id(self) -> str:
        self._made += 1
        return f"mallory-{self._made}"

    # --- what it sends ------------------------------------------------------------------------

    def honest(self, at: Ground) -> dict[str, Any]:
        """A message as an honest member would write it."""
        return self._call(at, self.chance.choice(TOLD), {})

    def mutated(self, at: Ground) -> dict[str, Any]:
        """Any message, changed anywhere, and signed."""
        method = self.chance.choice(sorted(SEEDS))
        params = sealed(at, self.mutator.mutated(SEEDS[method](at)))
        return self._request(method, params)

    def two_contents(self, at: Ground, method: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Two messages of one name, each signed, that say different things."""
        one = SEEDS[method](at)
        other = orjson.loads(orjson.dumps(one))
        holder, member = CHANGES[method](other)
        holder[member] = {"another": 1} if isinstance(holder[member], dict) else "another"
        return self._request(method, sealed(at, one)), self._request(method, sealed(at, other))

    def of_other_parties(self, at: Ground) -> list[dict[str, Any]]:
        """Three messages: a version of the contract, the same content for one party more, and what
        only that party may say of it."""
        content = {"path": f"/{self.fresh_id()}"}
        parties = [repo_id_for(at.project, name) for name in ("alpha", "beta", "gamma", NAME)]
        plain = version(
            at, version=2, content=content, parties=parties, parent=digest(CONTENT), stamp=at.now
        )
        second = replace(at, name=OTHER)
        bound = plain | {"parties": [*parties, second.repo], "stamp": at.now + 1}
        place = {"version": 2, "digest": plain["digest"], "stamp": at.now + 2}
        failed = facts(second)[4] | place
        opened = {"kind": "round", "number": 2} | place
        work = facts(second)[3] | place | {"round": 2}
        third = bound | {
            "version": 3,
            "repo_id": second.repo,
            "parent": plain["digest"],
            "digest": digest({}),
            "content": {},
            "stamp": at.now + 3,
        }
        later = self.chance.sample([failed, opened, work, third], 4)
        return [self._of_contract(at, some) for some in ([plain], [bound], later)]

    def begins(self, at: Ground) -> dict[str, Any]:
        """A contract under the id of one that another has begun."""
        return self._of_contract(at, [version(at)])

    def _of_contract(self, at: Ground, said: list[Any]) -> dict[str, Any]:
        return self._request("cacp/contract/sync", sealed(at, contract_of(at, at.contract, said)))

    def rewritten(self, at: Ground) -> dict[str, Any]:
        """Another header of a project, later than any, signed or not."""
        said = SEEDS["cacp/project/sync"](at)
        said["registers"] |= {
            "status": self.chance.choice(["implementing", "complete"]),
            "agreement_policy": "all",
            "stamp": at.now + self.chance.choice([0, 1, 3_600_000_000]),
            "repos": [],
        }
        if self.chance.random() < 0.3:
            del said["registers"]["signature"]
        return self._request("cacp/project/sync", sealed(at, said))

    def redescribed(self, at: Ground, names: Sequence[str]) -> dict[str, Any]:
        """Repos of others, as they never described them, dated back."""
        said = SEEDS["cacp/project/sync"](at)
        [own] = said["registers"]["repos"]
        back = at.now - self.chance.choice([0, 1, DAY, 900 * DAY])
        repos = []
        for name in self.chance.sample(list(names), min(2, len(names))):
            other = {"repo_id": repo_id_for(at.project, name), "name": name, "stamp": back}
            other |= {"role": REWRITTEN, "claims": []}
            if self.chance.random() < 0.3:
                other["signature"] = None
            repos.append(own | other)
        said["registers"]["repos"] = repos
        return self._request("cacp/project/sync", sealed(at, said))

    def renamed(self, at: Ground, contract: str) -> dict[str, Any]:
        """Another's contract, as something else, dated back; with a word on it or without."""
        said = SEEDS["cacp/contract/sync"](at)
        said["contract"] |= {"contract_id": contract, "type": "custom", "name": REWRITTEN}
        said["createdAt"] = at.now - self.chance.choice([0, 1, DAY, 900 * DAY])
        # A version of its own would begin the contract where nothing is known of it yet.
        said["facts"] = said["facts"][1:2] if self.chance.random() < 0.5 else []
        if self.chance.random() < 0.3:
            del said["headerSignature"]
        return self._request("cacp/contract/sync", sealed(at, said))

    def again(self) -> dict[str, Any] | None:
        """What another has said, in its own name."""
        return dict(self.chance.choice(self.heard)) if self.heard else None

    def altered(self) -> dict[str, Any] | None:
        """The same, changed on the way."""
        said = self.again()
        if said is None:
            return None
        return said | {"params": self.mutator.mutated(said["params"])}

    def _call(self, at: Ground, method: str, more: dict[str, Any]) -> dict[str, Any]:
        return self._request(method, sealed(at, SEEDS[method](at) | more))

    def _request(self, method: str, params: Any) -> dict[str, Any]:
        if isinstance(params, dict):
            params = {"source_agent": self.agent} | params
        return {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}

    # --- what it answers ----------------------------------------------------------------------

    def answer(self, at: Ground, body: bytes) -> bytes:
        """The answer to a node: takes all that it is told, and lies when it is asked."""
        calls = decoded(body)
        for call in calls:
            if call["method"] in TOLD:
                params = call["params"] | {"source_agent": self.agent}
                self.heard.append({"jsonrpc": "2.0", "id": 1} | call | {"params": params})
        answers = [
            {"jsonrpc": "2.0", "id": call.get("id"), "result": self._result(at, call)}
            for call in calls
        ]
        return orjson.dumps(answers if body[:1] == b"[" else answers[0])

    def _result(self, at: Ground, call: dict[str, Any]) -> Any:
        if call["method"] == "cacp/sync/digest":
            return self._digest(at, call["params"]["prefixes"])
        if call["method"] == "cacp/sync/pull":
            return self._pulled(at, call["params"]["entities"])
        return {"status": "skipped", "reason": "nothing new"}

    def _digest(self, at: Ground, prefixes: list[str]) -> Any:
        told = {"time": at.now + self.chance.choice(CLOCKS), "behind": False}
        sums = {
            prefix + digit: self._hex() for prefix in prefixes for digit in "07f" if len(prefix) < 3
        }
        names = [
            Name(self.chance.choice(["project", "contract", "context", "file"]), at.project, one)
            for one in (at.contract, self.fresh_id(), at.project)
        ]
        leaves = [one._asdict() | {"digest": leaf(one, [self._hex().encode()])} for one in names]
        return told | {"sums": sums, "leaves": leaves}

    def _pulled(self, at: Ground, entities: list[Any]) -> Any:
        makes = [lambda: self.honest(at), lambda: self.mutated(at), self.again, self.altered]
        made = [self.chance.choice(makes)() for _ in entities[:5]]
        messages = [
            {"method": one["method"], "params": one["params"]}
            for one in made
            if one is not None and isinstance(one["params"], dict) and _is_json(one["params"])
        ]
        return {"messages": messages, "rest": self.chance.choice([0, 0, 0, len(entities), 2**31])}

    def _hex(self) -> str:
        return f"{self.chance.getrandbits(128):032x}"


def _is_json(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
