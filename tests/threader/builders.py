"""Manifests, states and stories for the tests of the pure core."""

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

from schemas.heal_decision import HealDecision
from schemas.manifest import Manifest
from schemas.run_state import HealerFailure, HealingRound, HistoryRecord, RunStatus
from schemas.v2 import FailureClass
from threader.healing import review
from threader.initial_state import new_state
from threader.outcome import Failure
from threader.scheduler import Scheduler

NOW = "2026-03-20T15:21:00.000000+00:00"


def make_manifest(
    tasks: Iterable[str | dict[str, Any]], policy: dict[str, Any] | None = None, **fields: Any
) -> Manifest:
    """A manifest whose tasks are ids, or dicts with what differs from the defaults."""
    listed = []
    for task in tasks:
        given = {"id": task} if isinstance(task, str) else task
        listed.append(
            {
                "prompt_ref": f"prompts/{given['id']}.md",
                "depends_on": [],
                "timeout_sec": 60,
                "verify_profile": "none",
                **given,
            }
        )
    return Manifest.model_validate(
        {
            "manifest_version": "2.0",
            "run_id": "run-1",
            "tasks": listed,
            "policy": policy or {},
            **fields,
        }
    )


def record(task_id: str, attempt: int = 1) -> HistoryRecord:
    return HistoryRecord(
        task_id=task_id,
        phase="worker",
        attempt_number=attempt,
        log_path=f"logs/{task_id}.worker.{attempt}.log",
        timestamp=NOW,
    )


def decide(**fields: Any) -> HealDecision:
    return HealDecision.model_validate(
        {
            "contract_version": "2.0",
            "scope": "batch",
            "decision": "RETRY",
            "failure_class": "prompt_gap",
            "root_cause": "the prompt omits a rule",
            "patches": [],
            **fields,
        }
    )


def outcome_of(word: str) -> Failure | None:
    """`ok`, or `<class> <signal>`; `contract!` is an output without a fence."""
    if word == "ok":
        return None
    if word == "contract!":
        return Failure(FailureClass.CONTRACT_ERROR, "no_sentinel", parser_error=True)
    name, _, signal = word.partition(" ")
    return Failure(
        name, signal or "x", blocked=name == FailureClass.BLOCKED_EXTERNAL, own_writes=True
    )


def heal_of(word: str) -> HealDecision | None:
    """`retry`, `retry A B`, `shrink`, `next_epoch`, `escalate A`, `not_fixable`, or `invalid`."""
    name, *tasks = word.split()
    if name == "invalid":
        return None
    if name == "escalate":
        named = [{"task_id": task, "reason": "beyond repair"} for task in tasks]
        return decide(decision="ESCALATE", escalations=named)
    if name == "not_fixable":
        return decide(decision="NOT_FIXABLE")
    window = {"shrink": "shrink_window", "next_epoch": "next_epoch"}.get(name, "same_window")
    policy: dict[str, Any] = {"retry_window": window}
    if tasks:
        policy["reset_tasks"] = tasks
    return decide(retry_policy=policy)


class Story:
    """Plays a run whose worker and healer follow a script, and tells it line by line."""

    def __init__(
        self, manifest: Manifest, worker: dict[str, list[str]], heals: list[str], *, healer: bool
    ) -> None:
        self.scheduler = Scheduler(manifest, new_state(manifest, NOW))
        self.healer = healer
        self.lines: list[str] = []
        self._worker = {
            task.id: self._script(worker.get(task.id) or worker.get("*") or ["ok"])
            for task in manifest.tasks
        }
        self._heals = self._script(heals or ["retry"])

    @staticmethod
    def _script(words: list[str]) -> Iterator[str]:
        return chain(words, repeat(words[-1]))

    def play(self) -> list[str]:
        state = self.scheduler.state
        for _ in range(10_000):
            window = self.scheduler.open_window()
            if window is None or state.run_status is not RunStatus.RUNNING:
                break
            if window.needs_heal:
                self._heal()
            else:
                self._attempt_all()
                verdict = self.scheduler.close_pass(NOW, healer=self.healer)
                self.lines.append(
                    f"  {verdict.text}; rate {verdict.failure_rate:.2f}, "
                    f"size {verdict.next_batch_size}"
                )
                for task_id, reason in verdict.escalations.items():
                    self.lines.append(f"  escalated {task_id}: {reason}")
        if state.run_status is RunStatus.RUNNING:
            self.scheduler.finish()
        self.lines.append(
            f"{state.run_status}" + (f": {state.abort_reason}" if state.abort_reason else "")
        )
        statuses: dict[str, list[str]] = {}
        for task_id, task in state.tasks.items():
            statuses.setdefault(task.status, []).append(task_id)
        self.lines += [f"  {status} {' '.join(tasks)}" for status, tasks in statuses.items()]
        return self.lines

    def _attempt_all(self) -> None:
        window = self.scheduler.open_window()
        assert window is not None
        self.lines.append(f"window {window.number}.{window.passes}: {' '.join(window.task_ids)}")
        while runnable := self.scheduler.runnable():
            for task_id in runnable:
                started = self.scheduler.tasks.start(task_id)
                word = next(self._worker[task_id])
                task, joined = self.scheduler.settle(
                    task_id, outcome_of(word), [record(task_id, started.runs)]
                )
                mark = f" {task.last_failure_signature}" if word != "ok" else ""
                self.lines.append(f"  {task_id} {task.status}{mark}")
                if task.escalation_reason:
                    self.lines[-1] += f": {task.escalation_reason}"
                self.lines += [f"  + {name} joins" for name in joined]

    def _heal(self) -> None:
        scheduler = self.scheduler
        window = scheduler.open_window()
        assert window is not None
        scope = scheduler.healing.scope()
        word = next(self._heals)
        number = scheduler.healing.next_number()
        self.lines.append(f"heal {number}: {word} for {' '.join(scope)}")
        decision = heal_of(word)
        if decision is None:
            failure = HealerFailure(
                window=window.number,
                failed_task_ids=scope,
                note="no decision",
                log_path=f"logs/@healer.{number}.log",
                timestamp=NOW,
            )
            if scheduler.healing.fail(failure):
                self.lines.append("  the window goes on without the healer")
            return
        round_ = HealingRound(
            round_number=number,
            scope="batch",
            window_task_ids=list(window.task_ids),
            failed_task_ids=scope,
            decision=decision.decision,
            timestamp=NOW,
        )
        grant = review(decision, scheduler.manifest, scope, scheduler.healing.next_patch())
        assert not isinstance(grant, list), grant
        scheduler.healing.apply(round_, decision, grant)
