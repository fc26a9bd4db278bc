"""`cacp project board` and `history`."""

import json

from tests.cli.run import cacp
from tests.cli.test_casing import other_names
from tests.support.team import FRONTEND, Team


def test_the_board_says_who_must_act(team: Team) -> None:
    team.proposed(name="Login")
    team.backend("context/askQuestion", question="Which format?")
    shown = cacp("project", "board", team.project, url=team.node.url).stdout
    assert "0 of 1 contract verified, 1 waiting" in shown
    assert f"respond: {FRONTEND}" in shown
    assert "Which format?" in shown
    printed = json.loads(cacp("project", "board", team.project, "--json", url=team.node.url).stdout)
    assert printed["repos"][0]["name"] == FRONTEND
    assert [*other_names(printed)] == []


def test_history_tells_what_was_done_and_shows_the_project_as_it_was(team: Team) -> None:
    team.agreed(name="Login")
    shown = cacp("project", "history", team.project, "--limit", "1", url=team.node.url)
    assert "agreed" in shown.stdout
    assert "Older steps follow" in shown.stderr
    words = ("project", "history", team.project, "--json")
    moments = json.loads(cacp(*words, url=team.node.url).stdout)["moments"]
    assert [*other_names(moments)] == []
    at = next(step["timestamp"] for step in moments if step["step"] == "proposed")
    past = cacp(*words[:-1], "--at", at, url=team.node.url).stdout
    assert "as it was at" in past
    assert f"respond: {FRONTEND}" in past
