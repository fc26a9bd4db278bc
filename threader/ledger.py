"""What a run has used so far, kept while it runs (agent-threader-v2 §6). Pure."""

from collections.abc import Iterable

from schemas.manifest import Budget
from schemas.run_state import HistoryRecord, RunState, Usage
from threader.budget import add, budget_of, counts, spent_in, why_stop


class UsageLedger:
    """Sums the usage of every invocation and compares it with the budget. `spent` is the total."""

    def __init__(self, state: RunState, manifest_budget: Budget) -> None:
        self._state = state
        self._manifest_budget = manifest_budget
        self.spent = spent_in(state)

    def charge(self, usage: Usage | None, *, completed: bool) -> None:
        """Add one invocation; `usage` is None when its log reports none."""
        self.spent = add(self.spent, usage, completed=completed)

    def charge_attempt(self, records: Iterable[HistoryRecord]) -> None:
        """Add those of an attempt's records in which a provider served a worker."""
        for record in filter(counts, records):
            self.charge(record.usage, completed=record.exit_code == 0)

    def charge_cut_off(self, log_path: str, usage: Usage | None, *, served: bool = True) -> None:
        """Add an invocation that was cut off, so that no history record counts it.

        Its log is remembered and never counted again. One that its provider has not `served` adds
        nothing.
        """
        self._state.cut_logs.append(log_path)
        if served:
            self._state.aside = add(self._state.aside, usage, completed=False)
            self.charge(usage, completed=False)

    def uncounted(self, logs: Iterable[str]) -> list[str]:
        """Those of the invocation logs `logs` that no record counts yet."""
        state = self._state
        known = {record.log_path for task in state.tasks.values() for record in task.history}
        known |= {round_.log_path for round_ in state.healing_rounds}
        known |= {failure.log_path for failure in state.healer_failures}
        known.update(state.cut_logs)
        return [log for log in logs if log not in known]

    def why_stop(self) -> str | None:
        """Why the budget allows no further invocation; None while it does."""
        return why_stop(self.spent, budget_of(self._state, self._manifest_budget))
