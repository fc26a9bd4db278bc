"""The list of projects as a page."""

import pytest

from server.auth.authenticator import Caller
from tests.server.methods.cacp.duo import Duo
from tests.server.page.views.look import Markup, look
from tests.support.in_process_node import ANA

READER = Caller(ANA, "api", "verified", "key", operator=True)


def test_each_project_with_how_far_it_is(duo: Duo) -> None:
    duo.verified()
    duo.proposed()
    page, html = look(duo.desk, "projects", READER)
    [project] = page["projects"]
    assert (project["verifiedCount"], project["contractCount"], project["waitingCount"]) == (
        1,
        2,
        1,
    )
    assert "1&nbsp;of&nbsp;2" in html
    assert f"/ui/projects/{duo.project}" in Markup(html).links


def test_archived_ones_are_shown_when_asked_for(duo: Duo) -> None:
    duo.desk.call_as(READER, "cacp/project/archive", projectId=duo.project)
    page, html = look(duo.desk, "projects", READER)
    assert (page["projects"], "No active project" in html) == ([], True)
    page, html = look(duo.desk, "projects", READER, archived="1")
    assert len(page["projects"]) == 1
    assert "archived</span>" in html


def test_it_has_pages(duo: Duo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.page.views.projects.PER_PAGE", 1)
    older, newer = duo.project, Duo(duo.desk).project
    page, html = look(duo.desk, "projects", READER)
    assert [project["projectId"] for project in page["projects"]] == [newer]
    assert 'rel="next"' in html
    page, html = look(duo.desk, "projects", READER, after=page["nextCursor"])
    assert [project["projectId"] for project in page["projects"]] == [older]
    assert 'rel="next"' not in html
