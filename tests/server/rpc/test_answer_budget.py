"""What answers may take: each by itself, and all together."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from server.domain.errors import Busy, TooLarge
from server.rpc.answer_budget import SMALL, AnswerBudget, AnswerShare, Meter, NoRoom

MIB = 1024 * 1024
LIMIT, TOTAL = 8 * MIB, 16 * MIB


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


async def made(share: AnswerShare, *sizes: int, answer: int | None = None) -> bytes:
    """An answer for which rows of these sizes are read."""

    async def make(meter: Meter) -> bytes:
        for size in sizes:
            await asyncio.to_thread(meter, size)
        return b"x" * (sum(sizes) if answer is None else answer)

    return await share.make(make)


def test_an_answer_is_counted_until_it_is_released() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        share = budget.share("a")
        assert len(await made(share, MIB, MIB, answer=3 * MIB)) == 3 * MIB
        assert budget.taken == 3 * MIB
        share.release()
        assert budget.taken == 0
        share.release()
        assert budget.taken == 0

    run(one())


def test_rows_that_the_answer_leaves_out_are_given_back() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        await made(budget.share("a"), 4 * MIB, answer=10)
        assert budget.taken == 10

    run(one())


def test_a_larger_answer_is_refused_while_it_is_read() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        read = []

        async def make(meter: Meter) -> bytes:
            for _ in range(100):
                meter(MIB)
                read.append(MIB)
            return b""

        with pytest.raises(TooLarge, match=f"larger than {LIMIT} bytes") as refused:
            await budget.share("a").make(make)
        assert sum(read) == LIMIT
        assert refused.value.data == {"reason": "answer_too_large", "limit": LIMIT}
        assert (budget.taken, budget.refused["answer_too_large"]) == (0, 1)

    run(one())


def test_an_answer_that_is_larger_than_its_rows_is_refused_too() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        with pytest.raises(TooLarge):
            await made(budget.share("a"), MIB, answer=LIMIT + 1)
        assert budget.taken == 0

    run(one())


def test_the_members_of_a_batch_share_a_limit() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        share = budget.share("a")
        await asyncio.gather(made(share, 3 * MIB), made(share, 3 * MIB))
        with pytest.raises(TooLarge):
            await made(share, 3 * MIB)
        assert share.held == 6 * MIB
        share.add_unchecked(2 * MIB)
        with pytest.raises(TooLarge):
            share.check()

    run(one())


def test_a_share_may_have_a_smaller_limit_and_no_larger_one() -> None:
    budget = AnswerBudget(LIMIT, TOTAL)
    assert budget.share("a", 2 * MIB).limit == 2 * MIB
    assert budget.share("a", 2 * LIMIT).limit == LIMIT


def test_who_finds_no_room_waits_and_is_read_anew_with_all_the_room_it_may_need() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, LIMIT)
        first, second = budget.share("a"), budget.share("b")
        await made(first, 6 * MIB)
        waiting = asyncio.ensure_future(made(second, 3 * MIB, 3 * MIB))
        while not budget.waiting:
            await asyncio.sleep(0)
        assert budget.taken == 6 * MIB
        first.release()
        assert len(await waiting) == 6 * MIB
        assert (budget.taken, budget.waiting, second.held) == (6 * MIB, 0, 6 * MIB)

    run(one())


def test_who_waits_too_long_is_told_to_try_again() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, LIMIT, wait_seconds=0)
        await made(budget.share("a"), 6 * MIB)
        with pytest.raises(Busy, match="try again in 5 s") as refused:
            await made(budget.share("b"), 6 * MIB)
        assert refused.value.data == {"reason": "busy", "retryAfter": 5}
        assert (budget.taken, budget.waiting, budget.refused["busy"]) == (6 * MIB, 0, 1)

    run(one())


def test_turns_are_taken_in_order_and_small_answers_pass() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, LIMIT)
        first = budget.share("a")
        await made(first, 6 * MIB)
        shares = [budget.share(name) for name in "bcd"]
        ended: list[str] = []

        async def wait(share: AnswerShare) -> None:
            await made(share, 5 * MIB)
            ended.append(share.caller)
            share.release()

        waiting = []
        for share in shares:
            waiting.append(asyncio.ensure_future(wait(share)))
            while budget.waiting < len(waiting):
                await asyncio.sleep(0)
        small = budget.share("e")
        await made(small, SMALL // 2)
        small.release()
        assert ended == []
        first.release()
        await asyncio.gather(*waiting)
        assert ended == ["b", "c", "d"]
        assert budget.taken == 0

    run(one())


def test_one_caller_has_half_at_most_and_keeps_nobody_else_waiting() -> None:
    async def one() -> None:
        budget = AnswerBudget(4 * MIB, 16 * MIB)
        held = [budget.share("a") for _ in range(2)]
        for share in held:
            await made(share, 4 * MIB)
        with pytest.raises(Busy):
            budget.check("a")
        budget.check("b")
        again = asyncio.ensure_future(made(budget.share("a"), 4 * MIB))
        while not budget.waiting:
            await asyncio.sleep(0)
        # It waits for its own: another is let in behind it, also one that waits.
        others = [budget.share("b"), budget.share("c")]
        await made(others[0], 4 * MIB)
        behind = asyncio.ensure_future(made(others[1], 4 * MIB))
        while budget.waiting < 2:
            await asyncio.sleep(0)
        others[0].release()
        await behind
        assert not again.done()
        held[0].release()
        others[1].release()
        await again

    run(one())


def test_what_fails_gives_back_all_it_took_and_counts_no_more() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        meters = []

        async def fail(meter: Meter) -> bytes:
            meters.append(meter)
            meter(MIB)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await budget.share("a").make(fail)
        # A read whose caller went away may still run in its thread.
        with pytest.raises(NoRoom):
            meters[0](MIB)
        assert budget.taken == 0

    run(one())


def test_what_another_member_of_a_batch_takes_while_one_waits_is_kept() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, LIMIT)
        first, batch = budget.share("a"), budget.share("b")
        await made(first, 6 * MIB)
        waiting = asyncio.ensure_future(made(batch, 5 * MIB))
        while not budget.waiting:
            await asyncio.sleep(0)
        batch.add_unchecked(MIB)
        first.release()
        await waiting
        assert (batch.held, budget.taken) == (6 * MIB, 6 * MIB)

    run(one())


def test_small_answers_beside_it_keep_no_answer_from_its_turn() -> None:
    async def one() -> None:
        for total in (LIMIT, TOTAL):
            budget = AnswerBudget(LIMIT, total)
            first, batches = budget.share("a"), [budget.share("a") for _ in range(3)]
            await made(first, 6 * MIB)
            for batch in batches:
                batch.add_unchecked(1000)
            waiting = [asyncio.ensure_future(made(batch, 6 * MIB)) for batch in batches]
            while budget.waiting < len(batches):
                await asyncio.sleep(0)
            first.release()
            for batch, answer in zip(batches, waiting, strict=True):
                assert len(await answer) == 6 * MIB
                batch.release()
            assert budget.taken == 0

    run(one())


def test_a_batch_waits_in_vain_only_once() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, LIMIT, wait_seconds=0)
        first, batch = budget.share("a"), budget.share("b")
        await made(first, 6 * MIB)
        with pytest.raises(Busy):
            await made(batch, 6 * MIB)
        budget._wait_seconds = 1e9
        with pytest.raises(Busy):
            await made(batch, 6 * MIB)

    run(one())


def test_what_is_still_made_of_a_released_answer_is_broken_off_and_given_back_once() -> None:
    async def one() -> None:
        budget = AnswerBudget(LIMIT, TOTAL)
        for step in (lambda meter: meter(MIB), lambda meter: None):
            share, going_on = budget.share("a"), asyncio.Event()

            async def make(
                meter: Meter,
                going_on: asyncio.Event = going_on,
                step: Callable[[Meter], None] = step,
            ) -> bytes:
                meter(MIB)
                await going_on.wait()
                step(meter)
                return b"x" * MIB

            # An MCP tool runs in a task of its own, which outlives a caller that goes away.
            making = asyncio.ensure_future(share.make(make))
            while not budget.taken:
                await asyncio.sleep(0)
            share.release()
            assert budget.taken == 0
            going_on.set()
            await asyncio.gather(making, return_exceptions=True)
            share.add_unchecked(MIB)
            assert (budget.taken, share.held, budget.waiting) == (0, 0, 0)
            assert not budget._of_caller

    run(one())


def test_callers_who_hold_nothing_are_not_remembered() -> None:
    budget = AnswerBudget(LIMIT, TOTAL)
    for name in range(1000):
        share = budget.share(str(name))
        share.add_unchecked(MIB)
        budget.check(str(name))
        share.release()
    assert not budget._of_caller
