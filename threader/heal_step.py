"""Asks the healer about the open window and books its answer (agent-threader-v2 §6)."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from schemas.run_state import HealerFailure
from threader.adapters.base import HEALER, Adapter
from threader.attempt import Workshop
from threader.budget import was_served
from threader.errors import Interrupted, OutOfBudget
from threader.gate import Gate
from threader.heal import MEDDLED, HealResult, heal
from threader.recorder import RunRecorder
from threader.scheduler import Scheduler

Value = TypeVar("Value")


@dataclass(frozen=True)
class HealStep:
    """One healer of one run. `stop` interrupts it."""

    scheduler: Scheduler
    recorder: RunRecorder
    gate: Gate
    shop: Workshop
    healer: Adapter
    stop: asyncio.Event

    async def run(self) -> None:
        """Raises Interrupted, OutOfBudget or ProviderLost; then nothing is booked."""
        number = self.scheduler.healing.next_number()
        names = ", ".join(self.scheduler.healing.scope())
        self.recorder.tell("healing", f"heal round {number} for {names}")
        result, began = await self._unless_stopped(self._ask())
        if result.outage is not None and self.gate.trip(HEALER, result.outage):
            self._charge_outage(result)
            return
        if result.outage is None and result.answered:
            self.gate.passed(began)
        record = result.record
        if result.decision is None or result.grant is None:
            self._book_failure(result)
            return
        self.scheduler.healing.apply(record, result.decision, result.grant)
        self.recorder.checkpoint()
        if result.transaction is not None:
            result.transaction.commit()
        meddled = "".join(f"; {note}" for note in record.changes if note.startswith(MEDDLED))
        text = f"round {number}: {record.decision}: {record.root_cause}{meddled}"
        self.recorder.tell("healed", text, rule=record.learned_rule)

    def _charge_outage(self, result: HealResult) -> None:
        usage = result.record.usage
        served = usage is not None and was_served(usage)
        self.scheduler.ledger.charge_cut_off(result.record.log_path, usage, served=served)
        self.recorder.checkpoint()

    def _book_failure(self, result: HealResult) -> None:
        record = result.record
        failure = HealerFailure(
            window=record.window,
            failed_task_ids=record.failed_task_ids,
            note=record.note or "",
            log_path=record.log_path,
            timestamp=record.timestamp,
            usage=record.usage,
        )
        given_up = self.scheduler.healing.fail(failure)
        self.recorder.checkpoint()
        then = "the window continues without it" if given_up else "it is asked once more"
        text = f"no round: the healer gave no decision: {record.note}; {then}"
        self.recorder.tell("healed", text)

    async def _ask(self) -> tuple[HealResult, float]:
        """The healer's answer, and when it was asked. Raises ProviderLost, OutOfBudget."""
        await self.gate.open()
        if reason := self.scheduler.ledger.why_stop():
            raise OutOfBudget(reason)
        began = self.gate.clock()
        shop = self.shop
        result = await heal(shop.project, shop.folder, self.healer, self.scheduler, shop.site)
        return result, began

    async def _unless_stopped(self, work: Coroutine[Any, Any, Value]) -> Value:
        """The result of `work`. When a stop comes first, cancels it and raises Interrupted."""
        working = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self.stop.wait())
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not working.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self.recorder.checkpoint()
            raise Interrupted
        return working.result()
