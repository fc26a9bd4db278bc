"""Calls to replicas as a literal client makes them: what got no answer is sent again, to any
replica and with the same idempotency key, until there is one or the client gives up."""

import asyncio
import time
import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx
import orjson

from schemas.errors import ErrorCode
from tests.replicas.history import Operation
from tests.replicas.models import Refused
from tests.support.node import bearer

ATTEMPT_SECONDS = 2.0
"""After so long a client takes an answer for lost."""
GIVES_UP = 0.1
"""How often a client does not send again what had no answer."""
UNKNOWN = "outcome_unknown"

Extract = Callable[[Any], Any]
"""What of a result stands in the history; the models say the same."""


@dataclass
class Record:
    """What all clients were told."""

    operations: list[Operation] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    """The names of the effects that clients were told of."""
    possible: set[str] = field(default_factory=set)
    """Those that may have taken place or not, as the answer was lost."""
    faults: list[str] = field(default_factory=list)
    """Answers that no client should get, whatever happens to the replicas."""
    reasons: dict[str, int] = field(default_factory=dict)
    """How often a replica could not take a call, by its reason."""


class Attempt:
    """What came of one request: exactly one is set, or `lost`."""

    __slots__ = ("denied", "lost", "result", "unavailable")

    def __init__(self) -> None:
        self.lost = False
        self.result: Any = None
        self.denied: Refused | None = None
        self.unavailable: str | None = None
        """The reason why nothing was done."""


class Client:
    """One client with calls one after the other. It chooses replicas by its seed."""

    def __init__(
        self, name: str, dice: Random, urls: Sequence[str], record: Record, http: httpx.AsyncClient
    ) -> None:
        self.name = name
        self.dice = dice
        self.urls = urls
        """Of the replicas. They may be fewer than there are: the client's own."""
        self._record = record
        self._http = http
        self._run = uuid.uuid4().hex
        self._calls = 0

    async def perform(
        self,
        about: str,
        name: str,
        args: tuple[Hashable, ...],
        method: str,
        params: dict[str, Any],
        extract: Extract,
        *,
        key: str,
        effect: str | None = None,
        persists: bool = False,
    ) -> Any:
        """Make a call, and note what it was told: what `extract` makes of its result, which is
        returned with it, or Refused. None when the client gave up.

        `effect` names what the call does, if it is a write that can be found again. `persists`: it
        does not give up.
        """
        self._calls += 1
        once = f"{self._run}-{self._calls}"
        invoked = time.monotonic_ns()
        lost = False
        while True:
            replica = self.dice.randrange(len(self.urls))
            attempt = await self._attempt(replica, method, params, key, once)
            lost |= attempt.lost
            if attempt.unavailable:
                reasons = self._record.reasons
                reasons[attempt.unavailable] = reasons.get(attempt.unavailable, 0) + 1
            if attempt.denied is not None or attempt.result is not None:
                break
            if not persists and self.dice.random() < GIVES_UP:
                if lost:
                    self._note(Operation(self.name, about, name, args, invoked), effect)
                return None
            await asyncio.sleep(self.dice.uniform(0.02, 0.2))
        told = attempt.denied if attempt.result is None else extract(attempt.result)
        where = f"replica {self.urls[replica].rpartition(':')[2]}"
        answered = Operation(
            self.name, about, name, args, invoked, time.monotonic_ns(), told, where
        )
        if attempt.denied is not None and lost:
            # What had no answer may still take place, and the refusal was not of it.
            self._note(Operation(self.name, about, name, args, invoked), effect)
            effect = None
        self._note(answered, effect)
        return told if attempt.result is None else (told, attempt.result)

    def _note(self, operation: Operation, effect: str | None) -> None:
        record = self._record
        record.operations.append(operation)
        if effect is not None and not isinstance(operation.result, Refused):
            (record.possible if operation.returned is None else record.acknowledged).add(effect)

    async def _attempt(
        self, replica: int, method: str, params: dict[str, Any], key: str, once: str
    ) -> Attempt:
        attempt = Attempt()
        body = orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1})
        headers = {
            "content-type": "application/json",
            "idempotency-key": once,
            **bearer(key),
        }
        try:
            response = await self._http.post(
                f"{self.urls[replica]}/", content=body, headers=headers, timeout=ATTEMPT_SECONDS
            )
            answer = orjson.loads(response.content)
        except httpx.ConnectError:
            attempt.unavailable = "no connection"
            return attempt
        except httpx.TransportError:
            attempt.lost = True
            return attempt
        if "error" in answer:
            self._take_error(attempt, method, params, answer["error"])
        else:
            attempt.result = answer["result"]
        return attempt

    def _take_error(
        self, attempt: Attempt, method: str, params: dict[str, Any], error: Any
    ) -> None:
        reason = str((error.get("data") or {}).get("reason"))
        if error["code"] != ErrorCode.SERVER_ERROR:
            attempt.denied = Refused(reason)
        elif reason == UNKNOWN:
            attempt.lost = True
        else:
            attempt.unavailable = reason
            if not reason.startswith("storage_") and reason not in ("stopping", "overloaded"):
                self._record.faults.append(f"{method} {params}: {error}")
