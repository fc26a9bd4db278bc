"""What a run has made at nodes, and its removal at the end.

Like the tests, the rules are data (`cleanup.json`): the runner knows no method.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from comply.matching import at
from comply.template import fill
from schemas.comply_cleanup import CleanupRule, CleanupRules

SECONDS = 60.0
"""How long removing may take in all."""
REASON_MAX = 160

Credentials = tuple[tuple[str, str], ...]
"""The headers of the caller that made something."""
Call = Callable[[str, Credentials, str, JsonValue], Awaitable[JsonValue]]
"""Sends a JSON-RPC call to the node at a URL, with headers, method and params; returns its answer.
Raises OSError when there is none."""


class NodeCaller(NamedTuple):
    """A node and the headers with which it was called."""

    url: str
    credentials: Credentials


class MadeThing(NamedTuple):
    """Something that a request has made. `id` is empty for what has none."""

    caller: NodeCaller
    rule_number: int
    id: str


def rules() -> Sequence[CleanupRule]:
    """The rules that come with the runner."""
    text = (Path(__file__).parent / "cleanup.json").read_text(encoding="utf-8")
    return CleanupRules.model_validate_json(text).rules


@dataclass(slots=True)
class MadeThings:
    """What the tests of a run have made and not removed themselves, the oldest first."""

    rules: Sequence[CleanupRule] = field(default_factory=rules)
    things: dict[MadeThing, None] = field(default_factory=dict)

    def concerns(self, request: str) -> bool:
        """Whether a request may make or remove something: a JSON-RPC method, or an HTTP method and
        a path."""
        return any(
            request == rule.request or (rule.remove is not None and request == rule.remove.method)
            for rule in self.rules
        )

    def note(self, caller: NodeCaller, request: str, exchanged: Mapping[str, JsonValue]) -> None:
        """Note what a request that succeeded has made or removed. `exchanged` is what the paths of
        the rules lead into."""
        whole: JsonValue = dict(exchanged)
        for thing in [thing for thing in self.things if thing.caller.url == caller.url]:
            removal = self._removal(thing)
            if removal == (request, exchanged.get("params")):
                del self.things[thing]
        for number, rule in enumerate(self.rules):
            if rule.request != request:
                continue
            if any(at(whole, path) != text for path, text in rule.where.items()):
                continue
            id = "" if rule.id is None else at(whole, rule.id)
            if isinstance(id, str):
                self.things[MadeThing(caller, number, id)] = None

    async def remove(self, call: Call, methods: Sequence[str] | None = None) -> list[str]:
        """Remove what can be removed, the newest first. Returns what was removed and what stays, a
        line each. `methods` are those that the node has, if it tells."""
        removed: Counter[str] = Counter()
        stays: Counter[tuple[str, str]] = Counter()
        until = asyncio.get_running_loop().time() + SECONDS
        for thing in reversed(self.things):
            rule = self.rules[thing.rule_number]
            problem = rule.stays or await self._remove(thing, call, methods, until)
            if problem:
                stays[rule.what, problem] += 1
            else:
                removed[rule.what] += 1
        self.things.clear()
        lines = [", ".join(f"{many} {what}" for what, many in removed.items())] if removed else []
        return [f"removed {line}" for line in lines] + [
            f"not removed: {many} {what}: {problem}" for (what, problem), many in stays.items()
        ]

    async def _remove(
        self, thing: MadeThing, call: Call, methods: Sequence[str] | None, until: float
    ) -> str:
        """Why a thing could not be removed; empty if it was."""
        removal = self._removal(thing)
        assert removal is not None
        method, params = removal
        if methods is not None and method not in methods:
            return f"the node has no {method}"
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            try:
                answer = await call(thing.caller.url, thing.caller.credentials, method, params)
            except OSError as error:
                return str(error)
            error_of = at(answer, "error")
            if error_of is None:
                return "" if at(answer, "result") is not None else "the node gives no answer"
            wait = at(error_of, "data.retryAfter")
            if not isinstance(wait, int | float) or loop.time() + wait > until:
                return str(at(error_of, "message"))[:REASON_MAX].replace(thing.id or "\n", "…")
            await asyncio.sleep(wait)
        return f"removing took longer than {SECONDS:g} s"

    def _removal(self, thing: MadeThing) -> tuple[str, Any] | None:
        """The call that removes a thing; None if there is none."""
        removal = self.rules[thing.rule_number].remove
        if removal is None:
            return None
        return removal.method, fill(dict(removal.params), {"id": thing.id})
