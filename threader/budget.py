"""What a run used, and whether its budget allows more. Pure.

Tokens are input and output together, cached or not. Usage that a log does not report is unknown,
never 0.
"""

from collections.abc import Iterable
from typing import Literal

from schemas.manifest import Budget
from schemas.run_state import HistoryRecord, RunState, Spent, TaskState, Usage

BLIND_LIMIT = 3
"""After this many completed invocations without any reported usage, no budget can be kept."""

Unit = Literal["tokens", "usd"]


def add(spent: Spent, usage: Usage | None, *, completed: bool) -> Spent:
    """`spent` plus one invocation; `usage` is what its log reports."""
    reported = usage or Usage()
    return Spent(
        invocations=spent.invocations + 1,
        completed=spent.completed + completed,
        input_tokens=spent.input_tokens + (reported.input_tokens or 0),
        cached_tokens=spent.cached_tokens + (reported.cached_tokens or 0),
        output_tokens=spent.output_tokens + (reported.output_tokens or 0),
        cost_usd=spent.cost_usd + (reported.cost_usd or 0.0),
        tokens_told=spent.tokens_told + (reported.output_tokens is not None),
        cost_told=spent.cost_told + (reported.cost_usd is not None),
    )


def together(parts: Iterable[Spent]) -> Spent:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part:
            total[name] = total.get(name, 0) + value
    return Spent.model_validate(total)


def counts(record: HistoryRecord) -> bool:
    """Whether a worker was invoked and its provider served it, as far as is known."""
    if record.phase != "worker" or record.duration_sec is None:
        return False
    return was_served(record.usage) if record.usage else record.outage is None


def was_served(usage: Usage) -> bool:
    """Whether the provider processed the request, whatever the result."""
    return any((usage.input_tokens, usage.output_tokens, usage.cost_usd))


def spent_on(task: TaskState) -> Spent:
    """What the workers of one task used."""
    spent = Spent()
    for record in task.history:
        if counts(record):
            spent = add(spent, record.usage, completed=record.exit_code == 0)
    return spent


def spent_on_healing(state: RunState) -> Spent:
    spent = Spent()
    for item in state.healing_rounds:
        spent = add(spent, item.usage, completed=True)
    for failure in state.healer_failures:
        spent = add(spent, failure.usage, completed=False)
    return spent


def spent_in(state: RunState) -> Spent:
    """What the whole run has used so far."""
    tasks = (spent_on(task) for task in state.tasks.values())
    return together([*tasks, spent_on_healing(state), state.aside])


def over(given: Budget | None, below: Budget | None) -> Budget:
    """`given`, completed by `below` where it sets no limit."""
    top, rest = given or Budget(), below or Budget()
    return Budget(tokens=top.tokens or rest.tokens, usd=top.usd or rest.usd)


def budget_of(state: RunState, manifest: Budget) -> Budget:
    """The budget in effect: the operator's for this run, else the manifest's."""
    return over(state.budget, manifest)


def count_text(number: float) -> str:
    """`950`, `12 k`, `1.2 M`."""
    if number < 1000:
        return f"{number:.0f}"
    if number < 999_500:
        return f"{number / 1000:.3g} k"
    return f"{number / 1_000_000:.3g} M"


def tokens_text(spent: Spent) -> str:
    """`1.2 M tokens (1.1 M in, of which 900 k cached, 98 k out)`, or `tokens not reported`."""
    if not spent.tokens_told:
        return "tokens not reported"
    cached = f", of which {count_text(spent.cached_tokens)} cached" if spent.cached_tokens else ""
    return (
        f"{count_text(spent.input_tokens + spent.output_tokens)} tokens "
        f"({count_text(spent.input_tokens)} in{cached}, {count_text(spent.output_tokens)} out)"
    )


def cost_text(spent: Spent) -> str:
    """`$3.10`, `$0.0021`, or `cost not reported`."""
    if not spent.cost_told:
        return "cost not reported"
    return f"${spent.cost_usd:.4f}" if spent.cost_usd < 0.01 else f"${spent.cost_usd:.2f}"


def spent_text(spent: Spent) -> str:
    """Tokens and cost, and how many invocations did not report them."""
    text = f"{tokens_text(spent)}, {cost_text(spent)}"
    gaps = []
    for name, reported in (("tokens", spent.tokens_told), ("cost", spent.cost_told)):
        if 0 < reported < spent.invocations:
            gaps.append(f"{name} of {spent.invocations - reported}")
    if gaps:
        text += f"; not reported: {' and '.join(gaps)} of {spent.invocations} invocations"
    return text


def used_up(spent: Spent, budget: Budget) -> list[Unit]:
    """The units of `budget` that are used up."""
    units: list[Unit] = []
    if budget.tokens is not None and spent.input_tokens + spent.output_tokens >= budget.tokens:
        units.append("tokens")
    if budget.usd is not None and spent.cost_usd >= budget.usd:
        units.append("usd")
    return units


def budget_text(budget: Budget) -> str:
    """`2 M tokens and $10.00`."""
    parts = [f"{count_text(budget.tokens)} tokens"] if budget.tokens is not None else []
    parts += [f"${budget.usd:.2f}"] if budget.usd is not None else []
    return " and ".join(parts)


def why_stop(spent: Spent, budget: Budget) -> str | None:
    """Why no further invocation may begin; None when one may."""
    if units := used_up(spent, budget):
        given = Budget(**{unit: getattr(budget, unit) for unit in units})
        return (
            f"the budget of {budget_text(given)} is used up ({spent_text(spent)}); "
            "`cacp thread resume` with a higher one continues the run"
        )
    if spent.completed < BLIND_LIMIT:
        return None
    blind = []
    if budget.tokens is not None and not spent.tokens_told:
        blind.append("tokens")
    if budget.usd is not None and not spent.cost_told:
        blind.append("cost")
    if not blind:
        return None
    return (
        f"the budget of {budget_text(budget)} cannot be kept: {spent.invocations} invocations "
        f"reported no {' or '.join(blind)}; let the CLI write JSON (`output`), or remove the "
        "budget"
    )
