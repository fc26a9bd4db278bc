"""A target in this process that says what a test tells it to: `send` is heard as it stands."""

import asyncio
import json
from pathlib import Path
from typing import Any

from comply.files import Case
from comply.record import Transcript
from comply.result import CaseResult
from comply.run import run_case
from comply.source import read
from comply.template import fill
from schemas.jsont import ComplianceTest, JsontStep


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

    async def clean(self) -> list[str]:
        return []

    async def close(self) -> None:
        self.closed = True


class ScriptedSession:
    def __init__(self) -> None:
        self.record = Transcript()
        self.variables: dict[str, Any] = {"a": "b"}
        self.turn = 0

    async def start(self) -> None: ...

    async def act(self, step: JsontStep) -> None:
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


def outcome(*steps: Any, severity: str = "required", seconds: float = 5) -> CaseResult:
    text = json.dumps({"title": "t", "severity": severity, "steps": steps})
    case = Case("t", "s", Path("t.jsont"), read(text))
    return asyncio.run(run_case(case, Scripted(), seconds))


def say(*messages: Any, **order: Any) -> Any:
    return {"send": {"say": list(messages), **order}}


def expect(*messages: Any, ms: int = 50) -> Any:
    return {"expect": {"timeoutMs": ms, "messages": list(messages)}}
