"""The links that `--web` prints, and that each leads to a page."""

import doctest

import pytest

from cli import page_link
from cli.page_link import PAGES
from server.page.views import VIEWS
from tests.cli.run import cacp
from tests.support.team import Team


def test_the_examples_hold() -> None:
    assert doctest.testmod(page_link).failed == 0


@pytest.mark.parametrize("name", sorted(PAGES.keys() & VIEWS.keys()))
def test_a_path_is_that_of_the_view(name: str) -> None:
    assert PAGES[name] == VIEWS[name].path


def test_every_view_has_a_link() -> None:
    assert VIEWS.keys() <= PAGES.keys()


def commands(team: Team) -> dict[str, tuple[list[str], str]]:
    """Commands with the view whose link they print, and its path."""
    at = f"/ui/projects/{team.project}"
    contract = team.proposed(name="Login")
    return {
        "next": (["next"], "/ui/attention"),
        "next of a project": (
            ["next", "--project", team.project],
            f"/ui/attention?project={team.project}",
        ),
        "status": (["status"], "/ui/health"),
        "projects": (["projects"], "/ui/projects"),
        "contracts": (["contracts", team.project], at),
        "show a project": (["show", team.project], at),
        "show a contract": (["show", contract], f"{at}/contracts/{contract}"),
        "project board": (["project", "board", team.project], at),
        "project history": (["project", "history", team.project], f"{at}/history"),
        "project history at a time": (
            ["project", "history", team.project, "--at", "2026-02-21"],
            f"{at}/history?at=2026-02-21",
        ),
        "activity": (
            ["activity", "--project", team.project, "--kind", "contract"],
            f"/ui/activity?project={team.project}&kind=contract",
        ),
        "inbox": (["inbox"], "/ui/mail"),
        "runs": (["runs"], "/ui/runs"),
        "peers": (["peers"], "/ui/mesh"),
        "peers list": (["peers", "list"], "/ui/mesh"),
        "watch": (["watch"], "/ui/activity"),
        "watch of a project": (
            ["watch", "--project", team.project],
            f"/ui/activity?project={team.project}",
        ),
        "watch --mesh": (["watch", "--mesh"], "/ui/mesh"),
    }


def test_each_command_prints_the_link_and_nothing_else(team: Team) -> None:
    """Each that leads to a view which is there answers 200."""
    paths = {path.split("{")[0] for view, path in PAGES.items() if view in VIEWS}
    for words, path in commands(team).values():
        shown = cacp(*words, "--web", url=team.node.url)
        assert (shown.exit_code, shown.output) == (0, f"{team.node.url}{path}\n"), shown.output
        if path.split("?")[0] in paths:
            assert team.node.http.get(path, headers={"accept": "text/html"}).status_code == 200


@pytest.mark.sqlite
def test_doctor_prints_the_link_of_the_node_that_it_examines(team: Team) -> None:
    shown = cacp("doctor", "--web", "--db", str(team.node.db))
    assert shown.output == f"{team.node.url}/ui/health\n"
    assert cacp("doctor", "--web", port="99999").exit_code == 2
