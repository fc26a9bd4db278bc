"""Drives a run from its lock to its end: real workers, a real healer (agent-threader-v2 §5)."""

import asyncio
from dataclasses import dataclass, field

from schemas.run_state import RunState, RunStatus
from threader import interruptions
from threader.adapters.base import Adapter, ResultReader
from threader.attempt import Workshop
from threader.budget import budget_of
from threader.errors import NotReady, OutOfBudget
from threader.events import Listener, end_text, verdict_text, window_text
from threader.files import sole_user
from threader.gate import ProviderLost, make_gate
from threader.heal_step import HealStep
from threader.load import ThreadProject
from threader.parsing import parse_result
from threader.preflight import check_budget, make_adapters, make_site
from threader.process import kill_leftovers
from threader.recorder import RunRecorder
from threader.recovery import charge_cut_off, kill_strays, undo_crash
from threader.scheduler import Scheduler
from threader.store import RunStore, now
from threader.window_runner import WindowRunner
from threader.windows import Action


@dataclass
class Orchestrator:
    """One run, opened and not yet begun. A signal handler sets `stop`."""

    project: ThreadProject
    store: RunStore
    scheduler: Scheduler
    listeners: list[Listener] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    read_result: ResultReader = parse_result

    def __post_init__(self) -> None:
        self._recorder = RunRecorder(self.store, self.scheduler, self.listeners)
        self._gate = make_gate(self.project.manifest.policy, self._on_pause)

    @property
    def state(self) -> RunState:
        return self.scheduler.state

    async def go(self) -> RunState:
        """Run to the end. Raises Interrupted after a stop; RunLocked, NotReady before a start."""
        self.store.prepare()
        with self.store.lock.held():
            self.store.check_unchanged()
            with sole_user(self.project.workspace):
                await self._go()
        return self.state

    async def _go(self) -> None:
        try:
            worker, healer = make_adapters(self.project)
            budget = budget_of(self.state, self.project.manifest.policy.budget)
            check_budget(budget, (worker, healer))
        except NotReady as error:
            self._recorder.stopped(error)
            raise
        folder = self.store.folder
        site = make_site(self.project, folder, self._on_lock)
        self._recorder.tell_kept(self.state.kept)
        life = asyncio.create_task(self._recorder.show_life())
        try:
            kill_strays(self.store, self._recorder)
            charge_cut_off(self.scheduler, folder, worker, healer)
            await undo_crash(self.store, self.state, site, self._recorder)
            self._recorder.checkpoint()
            await self._to_the_end(
                Workshop(self.project, folder, worker, site, self.read_result), healer
            )
        except Exception as error:
            self._recorder.keep(site.backup_copies())
            charge_cut_off(self.scheduler, folder, worker, healer)
            self._recorder.stopped(error)
            raise
        finally:
            life.cancel()
            # A daemon that left its worker's group would keep writing into the workspace.
            kill_leftovers(str(folder))

    def _on_pause(self, text: str | None, long: bool) -> None:
        outage = self._gate.breaker.outage
        if text is None or outage is None:
            self._recorder.resumed("outage", "the pause is over")
        else:
            self._recorder.paused(outage.reason, text, long=long)

    def _on_lock(self, reason: str | None) -> None:
        if reason is None:
            self._recorder.resumed("lock", "the lock is free")
        else:
            self._recorder.waiting(reason)

    async def _to_the_end(self, shop: Workshop, healer: Adapter | None) -> None:
        try:
            await self._run_windows(shop, healer)
        except (ProviderLost, OutOfBudget) as reason:
            interruptions.over(self.state, now(), "outage")
            self.scheduler.stop(str(reason))
        if self.state.run_status is RunStatus.RUNNING:
            self.scheduler.finish()
        self._recorder.checkpoint()
        self._recorder.tell("ended", end_text(self.state))

    async def _run_windows(self, shop: Workshop, healer: Adapter | None) -> None:
        """Run window after window, and heal those that need it, until no task is left to start."""
        scheduler, recorder, gate, stop = self.scheduler, self._recorder, self._gate, self.stop
        step = HealStep(scheduler, recorder, gate, shop, healer, stop) if healer else None
        while (window := scheduler.open_window()) is not None:
            if not window.needs_heal or step is None:
                recorder.checkpoint()
                recorder.tell("window", window_text(window))
                await WindowRunner(scheduler, self.store, recorder, gate, shop, stop).run()
                verdict = scheduler.close_pass(now(), healer=step is not None)
                recorder.checkpoint()
                recorder.tell("verdict", verdict_text(verdict))
                if verdict.action is not Action.HEAL:
                    continue
            if step is not None:
                await step.run()
