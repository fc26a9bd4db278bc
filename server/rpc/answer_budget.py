"""How much memory answers may take: each by itself, and all that are being made or sent.

An `AnswerShare` is what the answer to one request takes. It is made when an answer turns out to be
large, so that small ones pay nothing. A wide read counts the rows that it takes out of the database
(`Meter`): it is broken off where its answer would be too large. Where there is no room it is broken
off too, waits its turn, and is begun anew with all the room that an answer may need.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from server.domain.errors import Busy, TooLarge

UNCOUNTED = 64 * 1024
"""An answer of so many bytes is not counted."""
SMALL = 1024 * 1024
"""An answer up to this passes those that wait, and has an eighth of the budget to itself: who
reads slowly what is large keeps nobody from a contract."""
WAIT_SECONDS = 10.0
"""How long a call waits for room before it is refused."""
RETRY_SECONDS = 5


class NoRoom(Exception):
    """The answer needs more than there is room for now."""


class _Waiting(NamedTuple):
    share: "AnswerShare"
    turn: "asyncio.Future[int]"
    """How much was taken for it."""


class AnswerBudget:
    """What all answers together may take; `limit` is for one. A caller has half at most.

    An answer of the limit always leaves some room, of all and of its caller's: what waits its turn
    is not kept from it by the small answers beside it.
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
        """Calls that wait for room."""
        return len(self._waiting)

    def share(self, caller: str, limit: int | None = None) -> "AnswerShare":
        """For the answer to a request; `limit` where it may take less than another."""
        return AnswerShare(self, caller, min(self.limit, limit or self.limit))

    def check(self, caller: str) -> None:
        """Raise Busy when there is no room for any answer to this caller."""
        if self.taken >= self._each and not self._fits(caller, 1, SMALL):
            raise self.busy()

    def busy(self) -> Busy:
        """The refusal of a call for whose answer there is no room."""
        self.refused["busy"] += 1
        return Busy(
            f"Answers take all the memory that they may ({self.total} bytes): try again in "
            f"{RETRY_SECONDS} s, and read those under way to their ends",
            retryAfter=RETRY_SECONDS,
        )

    def _fits(self, caller: str, more: int, size: int) -> bool:
        """Whether an answer that comes to `size` may take `more`."""
        room = self.total if size <= SMALL else self._large
        return self.taken + more <= room and self._of_caller[caller] + more <= self._each

    def _take(self, share: "AnswerShare", more: int, *, waits: bool = False) -> bool:
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
            # Who has nothing any more is not remembered.
            del self._of_caller[share.caller]

    def _give(self, share: "AnswerShare", less: int) -> None:
        with self._lock:
            if not share.released:
                self._move(share, -less)
        self._let_in()

    def _release(self, share: "AnswerShare") -> None:
        with self._lock:
            self._move(share, -share.held)
            share.released = True
        self._let_in()

    def _let_in(self) -> None:
        """Give those who wait their turns, in order. Who waits for an answer of its own caller's is
        passed over; who waits for others' is not."""
        for one in [*self._waiting]:
            share = one.share
            if one.turn.done():
                continue
            more = share.limit - share.held
            if self._take(share, more, waits=True):
                one.turn.set_result(more)
            elif self._of_caller[share.caller] + more <= self._each:
                break

    async def _turn(self, share: "AnswerShare") -> int:
        """Wait until all that the answer may need is taken for it; how much. Raises Busy."""
        if share.released or share.refused:
            raise self.busy()
        one = _Waiting(share, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._let_in()
        try:
            await asyncio.wait([one.turn], timeout=self._wait_seconds)
        finally:
            self._waiting.remove(one)
            if not one.turn.done():
                # Those behind it may fit.
                self._let_in()
        if not one.turn.done():
            share.refused = True
            raise self.busy()
        return one.turn.result()


class Meter:
    """Counts what one read takes, in its thread, into a share."""

    def __init__(self, share: "AnswerShare", reserved: int = 0) -> None:
        self._share = share
        self._reserved = reserved
        self._lock = threading.Lock()
        self._settled = False
        self.taken = 0

    def __call__(self, size: int) -> None:
        """Raises what breaks the read off."""
        with self._lock:
            if self._settled:
                # Nobody waits for it any more.
                raise NoRoom
            self.taken += size
            more = self.taken - self._reserved
            if more > 0:
                self._reserved += self._share.take(more)

    def settle(self, size: int) -> None:
        """What was counted comes to an answer of so many bytes."""
        with self._lock:
            self._settled = True
            self._share.change(size - self._reserved)


class AnswerShare:
    """What the answer to one request takes of the budget: that of a batch, of all its members."""

    def __init__(self, budget: AnswerBudget, caller: str, limit: int) -> None:
        self._budget = budget
        self.caller = caller
        self.limit = limit
        self.held = 0
        self.released = False
        """Nobody waits for the answer any more: what is still made of it is broken off, and nothing
        is counted twice."""
        self.refused = False
        """It has waited in vain: the other members of a batch don't wait as long again, each."""
        self._ahead = 0
        self._one_by_one = asyncio.Lock()

    async def make(self, make: Callable[[Meter], Awaitable[bytes]]) -> bytes:
        """An answer, made with a meter that counts what goes into it; the members of a batch one by
        one. Raises TooLarge or Busy."""
        async with self._one_by_one:
            try:
                return await self._made(Meter(self), make)
            except NoRoom:
                self._ahead = await self._budget._turn(self)
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
        """Count more into the answer, and some in advance; how much. Raises TooLarge, or what has
        `make` wait."""
        room = self.limit - self.held
        if more > room:
            raise self.too_large()
        taken = min(max(more, UNCOUNTED), room)
        if not self._budget._take(self, taken):
            raise NoRoom
        return taken

    def change(self, more: int) -> None:
        """Count what is there already, whether there is room or not."""
        self._budget._give(self, -more)

    def check(self) -> None:
        """Raise TooLarge when the answer can take no more, and Busy when there is no room."""
        if self.held - self._ahead >= self.limit:
            raise self.too_large()
        self._budget.check(self.caller)

    def release(self) -> None:
        """The answer is sent, or never will be. Its making may still go on for a moment, where
        another task or thread does it."""
        self._budget._release(self)

    def too_large(self) -> TooLarge:
        """The refusal; `dispatch` says of which method, and what to call in its place."""
        self._budget.refused["answer_too_large"] += 1
        return TooLarge(
            f"the answer would be larger than {self.limit} bytes",
            reason="answer_too_large",
            limit=self.limit,
        )
