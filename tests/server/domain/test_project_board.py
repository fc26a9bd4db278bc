"""A board of contracts: its columns and order, who blocks, and how it was."""

from hypothesis import given
from hypothesis import strategies as st

from server.domain.attention.contracts import openings
from server.domain.contract import Facts, current_of, status_of, updated_at
from server.domain.project_board import (
    STATUSES,
    BoardCard,
    CardStep,
    card_at,
    columns,
    in_order,
    loads,
)
from tests.server.domain.histories import API, WEB, histories
from tests.server.domain.story import Story


def card(name: str, *steps: CardStep, status: str = "agreed", updated_at: int = 1) -> BoardCard:
    return BoardCard(name, "custom", name, 1, status, "api", updated_at, steps)  # type: ignore[arg-type]


def of(facts: Facts) -> BoardCard:
    """The card that follows from all facts."""
    current = current_of(facts)
    steps = [CardStep(step.kind, step.repo_id, step.since) for step in openings("p", "c", facts)]
    return BoardCard(
        "c",
        "custom",
        "n",
        current.version,
        status_of(facts),
        current.repo_id,
        updated_at(facts),
        in_order(steps),
    )


NEW = card("c")._replace(name="n")
WAITS = CardStep("implement", "web", 7)


@given(histories())
def test_the_board_at_the_newest_stamp_is_the_present_one(replicas: list[Facts]) -> None:
    for facts in replicas:
        assert card_at("p", NEW, facts, updated_at(facts)) == of(facts)


@given(histories(), st.integers(0, 45))
def test_a_card_of_the_past_shows_only_the_past(replicas: list[Facts], at: int) -> None:
    for facts in replicas:
        past = card_at("p", NEW, facts, at)
        if past is not None:
            assert past.updated_at <= at
            assert all(step.since <= at for step in past.steps)
        assert (past is None) == (at < min(fact.stamp for fact in facts.values()))


def test_what_waited_longest_comes_first_and_what_waits_for_nothing_last() -> None:
    old, new = card("old", WAITS._replace(since=2)), card("new", WAITS)
    idle, changed = card("idle", updated_at=3), card("changed", updated_at=4)
    [column] = [shown for shown in columns([idle, new, changed, old], 10) if shown.total]
    assert [shown.name for shown in column.cards] == ["old", "new", "changed", "idle"]


def test_every_status_has_a_column_and_a_column_has_pages() -> None:
    cards = [card(f"{number}", WAITS._replace(since=number)) for number in range(5)]
    assert [column.status for column in columns(cards, 2)] == list(STATUSES)
    names, after = [], None
    while True:
        [column] = columns(cards, 2, status="agreed", after=after)
        assert column.total == 5
        names += [shown.name for shown in column.cards]
        if not column.more:
            break
        after = column.cards[-1].rank
    assert names == ["0", "1", "2", "3", "4"]


def test_who_blocks() -> None:
    verify = CardStep("verify", "api", 9)
    busy = loads([card("a", WAITS, verify), card("b", WAITS._replace(since=3)), card("c")])
    assert busy["web"] == ({"implement": 2}, 2, 3)
    assert busy["api"] == ({"verify": 1}, 1, 9)
    assert set(busy) == {"web", "api"}


def test_who_had_to_act() -> None:
    story = Story(API, WEB)
    story.then(WEB, "agree")
    story.then(WEB, "complete")
    steps = [
        [(step.kind, step.repo_id) for step in past.steps]
        for at in range(1, 4)
        if (past := card_at("p", NEW, story.facts, at))
    ]
    assert steps == [
        [("respond", "web")],
        [("implement", "api"), ("implement", "web")],
        [("implement", "api")],
    ]
