"""Limits the memory of answers: of each, and of all that are being made or sent.

An `AnswerShare` is what the answer to one request takes of the budget. It is made when an answer
turns out to be large, so that small ones cost nothing. A wide read counts the rows that it reads
(`Meter`), and stops when its answer would be too large. When the budget has no room, the read
stops, waits for its turn, and starts again with room for an answer of the largest size.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from server.domain.errors import Busy, TooLarge

UNCOUNTED = 64 * 1024
"""Answers up to this many bytes are not counted."""
SMALL = 1024 * 1024
"""Answers up to this many bytes overtake those that wait, and have an eighth of the budget for
themselves: slow readers of large answers do not block
readers of contracts."""
WAIT_SECONDS = 10.0
"""How long a call waits for room before it is refused."""
RETRY_SECONDS = 5


class NoRoom(Exception):
    """The budget has no room for the answer now."""


class _Waiting(NamedTuple):
    share: "AnswerShare"
    turn: "asyncio.Future[int]"
    """The bytes that were reserved for the share."""


class AnswerBudget:
    """The memory of all answers: `total` bytes, `limit` for one, and half of it for one caller.

    An answer of the limit leaves room in the total and in its caller's half, so that small answers
    never keep a waiting one from its turn.
    """

    def __init__(self, limit: int, total: int, wait_seconds: float = WAIT_SECONDS) -> None:
        self.limit = limit
        self.total = max(total, limit + limit // 4)
        self._large = self.total - self.total // 8
        self._each = max(self.total // 2, limit + limit // 16)
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._of_caller: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []
        self.taken = 0
        """Bytes of answers that are being made or sent."""
        self.refused: Counter[str] = Counter({"answer_too_large": 0, "busy": 0})

    @property
    def waiting(self) -> int:
        """The calls that wait for room."""
        return len(self._waiting)

    def share(self, caller: str, limit: int | None = None) -> "AnswerShare":
        """The share of a request's answer; `limit` lowers the limit of one answer."""
        return AnswerShare(self, caller, min(self.limit, limit or self.limit))

    def check(self, caller: str) -> None:
        """Raise Busy when there is no room for any answer to this caller."""
        if self.taken >= self._each and not self._fits(caller, 1, SMALL):
            raise self.busy()

    def busy(self) -> Busy:
        """The refusal of a call whose answer does not fit now."""
        self.refused["busy"] += 1
        return Busy(
            f"Answers use all the memory reserved for them ({self.total} bytes): try again in "
            f"{RETRY_SECONDS} s, and read your open responses to their ends",
            retryAfter=RETRY_SECONDS,
        )

    def _fits(self, caller: str, more: int, size: int) -> bool:
        """Whether an answer of `size` bytes in all may take `more` now."""
        room = self.total if size <= SMALL else self._large
        return self.taken + more <= room and self._of_caller[caller] + more <= self._each

    def _try_reserve(self, share: "AnswerShare", more: int, *, waits: bool = False) -> bool:
        with self._lock:
            size = share.held + more
            passes = waits or size <= SMALL or not self._waiting
            if share.released or not passes or not self._fits(share.caller, more, size):
                return False
            self._move(share, more)
            return True

    def _move(self, share: "AnswerShare", more: int) -> None:
        share.held += more
        self.taken += more
        self._of_caller[share.caller] += more
        if not self._of_caller[share.caller]:
            # Callers without open answers are not remembered.
            del self._of_caller[share.caller]

    def _return_bytes(self, share: "AnswerShare", less: int) -> None:
        with self._lock:
            if not share.released:
                self._move(share, -less)
        self._serve_waiting()

    def _release(self, share: "AnswerShare") -> None:
        with self._lock:
            self._move(share, -share.held)
            share.released = True
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        """Serve the waiting calls in order. A call that waits for its own caller's share is
        skipped; one that waits for the total is not."""
        for waiting in [*self._waiting]:
            share = waiting.share
            if waiting.turn.done():
                continue
            more = share.limit - share.held
            if self._try_reserve(share, more, waits=True):
                waiting.turn.set_result(more)
            elif self._of_caller[share.caller] + more <= self._each:
                break

    async def _wait_for_room(self, share: "AnswerShare") -> int:
        """Wait until room for the largest answer is reserved. Returns its bytes. Raises Busy."""
        if share.released or share.refused:
            raise self.busy()
        waiting = _Waiting(share, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._serve_waiting()
        try:
            await asyncio.wait([waiting.turn], timeout=self._wait_seconds)
        finally:
            self._waiting.remove(waiting)
            if not waiting.turn.done():
                # The calls behind it may fit.
                self._serve_waiting()
        if not waiting.turn.done():
            share.refused = True
            raise self.busy()
        return waiting.turn.result()


class Meter:
    """Counts the bytes of one read into a share, from the reader's thread."""

    def __init__(self, share: "AnswerShare", reserved: int = 0) -> None:
        self._share = share
        self._reserved = reserved
        self._lock = threading.Lock()
        self._settled = False
        self.taken = 0

    def __call__(self, size: int) -> None:
        """Count `size` more bytes. Raises TooLarge or NoRoom, which stop the read."""
        with self._lock:
            if self._settled:
                # The request was abandoned.
                raise NoRoom
            self.taken += size
            more = self.taken - self._reserved
            if more > 0:
                self._reserved += self._share.take(more)

    def settle(self, size: int) -> None:
        """Replace what was counted by the size of the answer."""
        with self._lock:
            self._settled = True
            self._share.add_unchecked(size - self._reserved)


class AnswerShare:
    """What the answer to one request, or to all members of a batch, takes of the budget."""

    def __init__(self, budget: AnswerBudget, caller: str, limit: int) -> None:
        self._budget = budget
        self.caller = caller
        self.limit = limit
        self.held = 0
        self.released = False
        """The answer was sent or abandoned: a read that still makes it stops, and counts
        nothing."""
        self.refused = False
        """Its wait timed out: the other members of the batch are refused without a wait."""
        self._ahead = 0
        self._one_by_one = asyncio.Lock()

    async def make(self, make: Callable[[Meter], Awaitable[bytes]]) -> bytes:
        """Make an answer with a meter that counts its bytes; the members of a batch one after the
        other. Raises TooLarge or Busy."""
        async with self._one_by_one:
            try:
                return await self._made(Meter(self), make)
            except NoRoom:
                self._ahead = await self._budget._wait_for_room(self)
                try:
                    return await self._made(Meter(self, self._ahead), make)
                finally:
                    self._ahead = 0

    async def _made(self, meter: Meter, make: Callable[[Meter], Awaitable[bytes]]) -> bytes:
        size = 0
        try:
            answer = await make(meter)
            meter(max(0, len(answer) - meter.taken))
            size = len(answer)
            return answer
        finally:
            meter.settle(size)

    def take(self, more: int) -> int:
        """Reserve at least `more` bytes. Returns how many. Raises TooLarge, or NoRoom, upon which
        `make` waits."""
        room = self.limit - self.held
        if more > room:
            raise self.too_large()
        taken = min(max(more, UNCOUNTED), room)
        if not self._budget._try_reserve(self, taken):
            raise NoRoom
        return taken

    def add_unchecked(self, more: int) -> None:
        """Count bytes that exist already, whether there is room or not."""
        self._budget._return_bytes(self, -more)

    def check(self) -> None:
        """Raise TooLarge when the share is used up, and Busy when the budget has no room."""
        if self.held - self._ahead >= self.limit:
            raise self.too_large()
        self._budget.check(self.caller)

    def release(self) -> None:
        """Give back all of it, once the answer was sent or abandoned. A task or thread may still
        make the answer for a moment."""
        self._budget._release(self)

    def too_large(self) -> TooLarge:
        """The refusal; `dispatch` adds the method, and what to call instead."""
        self._budget.refused["answer_too_large"] += 1
        return TooLarge(
            f"the answer would be larger than {self.limit} bytes",
            reason="answer_too_large",
            limit=self.limit,
        )
