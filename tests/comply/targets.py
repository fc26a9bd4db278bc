"""A target in this process that says what a test tells it to: `send` is heard as it stands."""

from typing import Any

from comply.files import Case
from comply.record import Record
from comply.template import fill
from schemas.jsont import ComplianceTest, Step


class Scripted:
    """`{"send": {"say": [messages…]}}` has it say them; `end`, `hang` and `break` do as named."""

    def __init__(self, name: str = "scripted") -> None:
        self.name = name
        self.facts: dict[str, str] = {}
        self.learnt = self.closed = False

    async def missing(self, test: ComplianceTest) -> str | None:
        return None

    async def learn(self) -> None:
        self.learnt = True

    def concerns(self, test: ComplianceTest) -> bool:
        return test.protocol_version == 1

    async def open(self, case: Case) -> "ScriptedSession":
        return ScriptedSession()

    async def close(self) -> None:
        self.closed = True


class ScriptedSession:
    def __init__(self) -> None:
        self.record = Record()
        self.variables: dict[str, Any] = {"a": "b"}
        self.turn = 0

    async def start(self) -> None: ...

    async def act(self, step: Step) -> None:
        self.turn += 1
        order: Any = fill(step.send or {}, {**self.variables, "turn": self.turn})
        self.record.sent(order)
        for message in order.get("say", []):
            self.record.heard(message)
        if "end" in order:
            self.record.end(order["end"])
        if "hang" in order:
            await self.record.until(lambda: False, 60)
        if "break" in order:
            raise OSError(order["break"])

    async def close(self) -> str:
        return "bye"
