"""Changes collected: each once, with its worst effects."""

from contracts.changes import CHANGES_MAX, ChangeLog


def test_a_change_that_is_met_often_is_one_with_the_worst_effects() -> None:
    log = ChangeLog()
    log.add(("a",), "rule", "mild", side="request", provider="unknown", user="GET /a")
    log.add(("a",), "rule", "bad", side="response", consumer="breaking", user="GET /b")
    log.add(("a",), "rule", "mild", side="response", user="GET /b")
    found = log.comparison()
    change = found.changes[0]
    assert (change.provider, change.consumer, change.side) == ("unknown", "breaking", None)
    assert change.why == "bad Concerns GET /a, GET /b."
    assert (found.verdict, found.provider, found.more) == ("breaking", "unknown", 0)
    assert change.breaks == "consumer"


def test_what_breaks_comes_first_and_the_rest_is_counted() -> None:
    log = ChangeLog()
    for number in range(CHANGES_MAX + 5):
        log.add((number,), "mild", "why")
    log.unknown(("last",), "odd")
    log.add(("very last",), "bad", "why", consumer="breaking", provider="breaking")
    found = log.comparison()
    assert [change.rule for change in found.changes[:3]] == ["bad", "odd", "mild"]
    assert found.changes[0].breaks == "both"
    assert (len(found.changes), found.more) == (CHANGES_MAX, 7)
    assert found.verdict == "breaking"


def test_no_change_is_the_same() -> None:
    found = ChangeLog().comparison()
    assert (found.verdict, found.provider, found.consumer) == ("same", "same", "same")
