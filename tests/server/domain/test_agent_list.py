"""Who can be worked with: from what is reachable, held and seen."""

from server.domain.agent_list import (
    AWAKE,
    NO_WORK,
    REPOS_MAX,
    KnownAgent,
    RepoOfAgent,
    WaitingWork,
    known_agents,
    matches,
    overview,
)

ANNA, BERT, FAR = (f"aid://example.com/{name}" for name in ("anna", "bert", "far"))
WEB = RepoOfAgent(f"{BERT}@1.0.0", "p1", "Profiles", "web")


def test_agents_with_mail_and_holders_of_repos() -> None:
    reachable = {ANNA: None, FAR: "aid://example.com/node"}
    agents = known_agents(
        reachable, [WEB], {ANNA: 5, FAR: 6, BERT: 7}, own=ANNA, holders_only=False
    )
    assert agents == [
        KnownAgent(BERT, None, False, 7, [WEB], 0),
        KnownAgent(FAR, "aid://example.com/node", True, None, [], 0),
    ]
    assert known_agents(reachable, [WEB], {}, own=ANNA, holders_only=True) == [
        KnownAgent(BERT, None, False, None, [WEB], 0)
    ]


def test_an_agent_is_awake_for_a_while_after_its_last_call() -> None:
    agent = KnownAgent(ANNA, None, True, 100, [], 0)
    assert agent.is_awake(100 + AWAKE)
    assert not agent.is_awake(101 + AWAKE)
    assert not agent._replace(last_seen=None).is_awake(0)


def test_many_repos_are_counted() -> None:
    many = [WEB._replace(project_id=f"p{number}") for number in range(REPOS_MAX + 3)]
    [agent] = known_agents({}, many, {}, own=ANNA, holders_only=False)
    assert (len(agent.repos), agent.more_repos) == (REPOS_MAX, 3)


def test_the_overview_begins_with_those_that_sleep_over_work() -> None:
    def agent(name: str, seen: int | None, node: str | None = None) -> KnownAgent:
        return KnownAgent(name, node, True, seen, [], 0)

    agents = [
        agent("far", None, "aid://example.com/node"),
        agent("idle-asleep", None),
        agent("idle-awake", AWAKE),
        agent("busy", AWAKE),
        agent("stalled", None),
        agent("stalled-more", None),
    ]
    work = {
        "busy": WaitingWork(items=9, urgent=2, since=5),
        "stalled": WaitingWork(mail=1),
        "stalled-more": WaitingWork(items=1, handoffs=1, since=3),
        "far": WaitingWork(items=3),
    }
    entries = overview(agents, lambda address: work.get(address, NO_WORK), AWAKE + 1)
    assert [entry.agent.address for entry in entries] == [
        *("stalled-more", "stalled", "busy", "idle-awake", "idle-asleep", "far")
    ]
    assert [entry.is_stalled for entry in entries] == [True, True, *(False,) * 4]
    assert entries[-1].work is None, "only its home node knows"
    unknown = overview(agents, lambda address: None, AWAKE + 1)
    assert not any(entry.is_stalled or entry.work for entry in unknown)


def test_work_adds_up() -> None:
    work = WaitingWork(items=2, urgent=1, since=7).plus(WaitingWork(mail=3))
    assert work == WaitingWork(items=2, urgent=1, since=7, mail=3)
    assert work.plus(WaitingWork(items=1, since=4)).since == 4
    assert (work.total, NO_WORK.total) == (5, 0)


def test_agents_match_by_their_id_or_a_repo() -> None:
    agent = KnownAgent(ANNA, None, True, 100, [WEB], 0)
    assert all(matches(agent, query) for query in ("", "ANNA", "we"))
    assert not matches(agent, "mobile")
