"""`cacp activity`: what has changed, by what is asked for."""

import json

from tests.cli.run import cacp
from tests.support.team import FRONTEND, Team


def test_changes_are_listed_newest_first(team: Team) -> None:
    team.agreed(name="Login")
    words = ("activity", "--project", team.project)
    lines = cacp(*words, url=team.node.url).stdout.splitlines()
    assert "agreed" in lines[1]
    assert "Login" in lines[1]
    limited = cacp(*words, "--limit", "2", "--json", url=team.node.url)
    assert [change["outcome"] for change in json.loads(limited.stdout)] == ["agreed", "proposed"]


def test_filters(team: Team) -> None:
    team.agreed(name="Login")
    words = ("activity", "--project", team.project, "--json")
    done = cacp(*words, "--repo", FRONTEND, "--kind", "contract", url=team.node.url)
    assert [change["outcome"] for change in json.loads(done.stdout)] == ["agreed"]
    nothing = cacp("activity", "--agent", "aid://example.com/nobody@1.0.0", url=team.node.url)
    assert "Nothing has changed yet" in nothing.stderr
    refused = cacp(*words, "--kind", "message", url=team.node.url)
    assert (refused.exit_code, "human" in refused.stderr) == (1, True)
