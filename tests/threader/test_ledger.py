"""What a run has used so far."""

from schemas.manifest import Budget
from schemas.run_state import Usage
from tests.threader.builders import NOW, make_manifest, record
from threader.budget import spent_in
from threader.initial_state import new_state
from threader.ledger import UsageLedger

USAGE = Usage(input_tokens=600, output_tokens=100, cost_usd=0.5)


def make_ledger(budget: Budget | None = None) -> UsageLedger:
    return UsageLedger(new_state(make_manifest(["A"]), NOW), budget or Budget())


def test_an_attempt_counts_where_a_provider_served_it() -> None:
    ledger = make_ledger()
    served, refused = record("A"), record("A", 2)
    served.usage, served.duration_sec = USAGE, 1.0
    refused.outage, refused.duration_sec = "overloaded", 1.0
    ledger.charge_attempt([served, refused])
    assert (ledger.spent.invocations, ledger.spent.input_tokens) == (1, 600)


def test_the_budget_stops_the_next_invocation() -> None:
    ledger = make_ledger(Budget(tokens=700))
    assert ledger.why_stop() is None
    ledger.charge(USAGE, completed=True)
    assert str(ledger.why_stop()).startswith("the budget of 700 tokens is used up")


def test_a_log_that_was_cut_off_is_counted_once() -> None:
    state = new_state(make_manifest(["A"]), NOW)
    ledger = UsageLedger(state, Budget())
    assert ledger.uncounted(["logs/a.log", "logs/b.log"]) == ["logs/a.log", "logs/b.log"]
    ledger.charge_cut_off("logs/a.log", USAGE)
    ledger.charge_cut_off("logs/b.log", None, served=False)
    assert ledger.uncounted(["logs/a.log", "logs/b.log"]) == []
    assert ledger.spent.invocations == 1
    assert spent_in(state) == ledger.spent
