"""What is open between all agents: who waits, what has waited too long, what needs a person."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.attention import Urgency
from schemas.attention_overview import OverviewKind
from server.domain.attention.items import URGENCIES, ItemSubject, Opening
from server.domain.attention.overview import (
    AWAY,
    HOUR,
    MINUTE,
    AwaitedParty,
    JudgedItem,
    OpenItem,
    OpenSubjectNote,
    ProjectRepos,
    away,
    blocked,
    is_overdue,
    item_of,
    judged,
    vacant,
    weighed,
)

NOW = 100 * HOUR
API = AwaitedParty("r-api", "api", "aid://x/api")
WEB = AwaitedParty("r-web", "web", "aid://x/web")
IOS = AwaitedParty("r-ios", "ios", "aid://x/ios")
FREE = AwaitedParty("r-free", "free")
PROJECT = ProjectRepos("p1", "shop", {each.repo_id or "": each for each in (API, WEB, IOS, FREE)})
NOTE = OpenSubjectNote("login", "r-api", API.agent, 2, ("r-api", "r-web", "r-ios"))
NOBODY: frozenset[str] = frozenset()


def opening(kind: OverviewKind, repo_id: str = "", **changes: Any) -> Opening:
    made = Opening(f"{kind}-{repo_id}", kind, "high", NOW, "p1", repo_id)  # type: ignore[arg-type]
    return made._replace(**changes)


def item(kind: OverviewKind = "respond", since: int = NOW, **changes: Any) -> OpenItem:
    made = OpenItem("i", kind, "high", since, ItemSubject("contract", "c1", "login"), (WEB,))
    return made._replace(**{"project_id": "p1", **changes})


def one(of: OpenItem, now: int = NOW, humans: frozenset[str] = NOBODY) -> JudgedItem:
    return judged([weighed(of)], now, humans)[0]


def test_openings_of_one_kind_on_a_contract_are_one_item() -> None:
    later = opening("respond", "r-ios", since=NOW + 5)
    made = item_of([opening("respond", "r-web"), later], "c1", NOTE, PROJECT)
    assert made.must_act == (IOS, WEB), "in the order of their names"
    assert (made.since, made.version, made.by, made.any_of) == (NOW, 2, API.agent, False)
    assert made.subject == ItemSubject("contract", "c1", "login")


def test_who_waits_are_those_for_whom_somebody_else_must_act() -> None:
    def blocks(*repos: str, kind: OverviewKind = "implement") -> tuple[AwaitedParty, ...]:
        return blocked(item_of([opening(kind, repo) for repo in repos], "c1", NOTE, PROJECT))

    assert blocks("r-web") == (API, IOS)
    assert blocks("r-web", "r-ios") == (API, WEB, IOS), "each of the two waits for the other"
    assert blocks("r-web", kind="conflict") == (), "only its author has to settle it"


def test_an_agent_does_not_wait_for_itself_in_another_repo() -> None:
    second = AwaitedParty("r-two", "two", WEB.agent)
    assert blocked(item(interested=(WEB, second, API))) == (API,)


def test_a_question_is_for_any_of_the_other_agents_and_blocks_its_asker() -> None:
    note = OpenSubjectNote("Cents?", "r-api", API.agent, interested=("r-api",))
    made = item_of([opening("answer", not_repo="r-api")], "q1", note, PROJECT)
    assert (made.must_act, made.any_of, made.subject.type) == ((WEB, IOS), True, "question")
    assert blocked(made) == (API,)


def test_a_repo_that_is_unknown_here_is_shown_by_its_id() -> None:
    assert item_of([opening("respond", "gone")], "c1", NOTE, PROJECT).must_act == (
        AwaitedParty("gone", "gone"),
    )


@pytest.mark.parametrize(
    ("kind", "urgency", "patience"),
    [
        ("answer", "urgent", 10 * MINUTE),
        ("respond", "high", HOUR),
        ("join", "normal", HOUR),
        ("implement", "normal", 4 * HOUR),
        ("repair", "high", 4 * HOUR),
        ("mail", "low", 24 * HOUR),
    ],
)
def test_what_is_too_long(kind: OverviewKind, urgency: Urgency, patience: int) -> None:
    waiting = item(kind, urgency=urgency)
    assert not is_overdue(waiting, NOW + patience)
    assert is_overdue(waiting, NOW + patience + 1)


def test_a_deadline_counts_instead() -> None:
    due = item("handoff", since=0, due_at=NOW)
    assert [is_overdue(due, now) for now in (NOW, NOW + 1)] == [False, True]


def test_what_is_asked_of_a_human_needs_a_person() -> None:
    humans = frozenset({WEB.agent or ""})
    assert one(item(), humans=humans).item.reason == "asked"
    assert one(item()).group == "in_time"
    assert one(item(any_of=True, must_act=(WEB, IOS)), humans=humans).group == "in_time"
    assert one(item(reason="approval", must_act=())).group == "person"


def test_a_free_repo_needs_a_person_when_nobody_took_it_in_time() -> None:
    waiting = [item(must_act=(FREE,), interested=(API, FREE)), item(interested=(IOS,))]
    free = vacant(PROJECT, "r-free", NOW, waiting)
    assert (free.waiting, free.interested) == (1, (API,))
    assert one(free).group == "in_time"
    assert one(free, NOW + HOUR + 1).group == "person"


def test_an_agent_is_missed_when_it_is_away_and_something_waits_too_long() -> None:
    late = item(since=NOW - 2 * HOUR, interested=(API, WEB))
    seen = {WEB.agent or "": NOW - AWAY - 1, API.agent or "": 0}
    [missed] = away([late, item()], NOW, seen)
    assert (missed.kind, missed.must_act, missed.waiting, missed.reason) == (
        "absent",
        (WEB,),
        1,
        "absent",
    )
    assert blocked(missed) == (API,)
    assert [*away([late], NOW, {WEB.agent or "": NOW - AWAY})] == [], "it has just called"
    assert [*away([late], NOW, {})] == [], "its home is elsewhere"
    assert [*away([item()], NOW, seen)] == [], "nothing waits too long"
    shared = late._replace(any_of=True, must_act=(WEB, IOS))
    assert [*away([shared], NOW, seen)] == [], "another agent can do it"


ITEMS = st.builds(
    item,
    since=st.integers(NOW - 30 * HOUR, NOW),
    id=st.uuids().map(str),
    urgency=st.sampled_from(URGENCIES),
    reason=st.sampled_from([None, "approval", "vacant"]),
    interested=st.lists(st.sampled_from([API, WEB, IOS])).map(tuple),
)


@given(st.lists(ITEMS, max_size=8, unique_by=lambda each: each.id), st.randoms())
def test_the_order_is_that_of_the_overview_whatever_the_items_came_in(
    items: list[OpenItem], chance: object
) -> None:
    ordered = judged(map(weighed, items), NOW, NOBODY)
    chance.shuffle(items)  # type: ignore[attr-defined]
    assert judged(map(weighed, items), NOW, NOBODY) == ordered
    for before, after in pairwise(ordered):
        assert before.rank < after.rank
        if before.group == after.group:
            assert before.unblocks >= after.unblocks
    assert all((each.group == "person") == (each.item.reason is not None) for each in ordered)
    assert all(each.is_overdue for each in ordered if each.group == "overdue")
