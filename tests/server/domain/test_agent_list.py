"""Who can be worked with: from what is reachable, held and seen."""

from server.domain.agent_list import AWAKE, REPOS_MAX, KnownAgent, RepoOfAgent, known_agents

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
