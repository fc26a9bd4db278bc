"""`cacp repos`: release and reassign a repo."""

import json

from tests.cli.run import cacp
from tests.support.node import AGENT
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team


def test_a_repo_changes_hands(team: Team) -> None:
    node, project = team.node, team.project
    released = cacp("repos", "release", project, FRONTEND, url=node.url)
    assert released.stdout == (
        f"Repo {FRONTEND} is released from {FRONTEND_AGENT}.\n"
        "An agent with a key for it can join now.\n"
    )
    given = cacp("repos", "reassign", project, FRONTEND, FRONTEND_AGENT, url=node.url)
    assert given.stdout == f"Repo {FRONTEND} is held by {FRONTEND_AGENT} now.\n"
    taken = cacp("repos", "reassign", project, FRONTEND, AGENT, "--json", url=node.url)
    assert json.loads(taken.stdout)["formerAgentId"] == FRONTEND_AGENT
    wrong = cacp("repos", "reassign", project, FRONTEND, "aid://example.com/x", url=node.url)
    assert (wrong.exit_code, "cacp keys create aid://example.com/x" in wrong.stderr) == (1, True)
    assert cacp("repos", "release", project, "nothing", url=node.url).exit_code == 1
