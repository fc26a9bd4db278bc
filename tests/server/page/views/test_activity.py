"""Every change as a page, with filters and a chart."""

from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import InvalidInput
from tests.server.methods.cacp.duo import Duo
from tests.server.page.views.look import Markup, look
from tests.support.in_process_node import ANA, BEN, HUMAN

READER = Caller(ANA, "api", "verified", "key")


def test_changes_with_a_chart(duo: Duo) -> None:
    duo.agreed("Login")
    page, html = look(duo.desk, "activity", READER)
    assert [change["outcome"] for change in page["changes"]][:2] == ["agreed", "proposed"]
    markup = Markup(html)
    assert markup.tags.count("rect") == sum(bool(span["count"]) for span in page["spans"])
    assert f"/ui/projects/{duo.project}" in markup.links


def test_filters_are_kept_in_the_form_and_on_the_next_page(
    duo: Duo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.page.views.activity.PER_PAGE", 1)
    duo.agreed()
    page, html = look(duo.desk, "activity", READER, project=duo.project, kind="contract")
    assert [change["kind"] for change in page["changes"]] == ["contract"]
    assert f'<option value="{duo.project}" selected>' in html
    assert f"project={duo.project}&amp;kind=contract&amp;after={page['nextCursor']}" in html
    of_ben, _ = look(duo.desk, "activity", READER, agent=BEN)
    assert [change["outcome"] for change in of_ben["changes"]] == ["agreed"]


def test_only_humans_are_offered_changes_of_mail(duo: Duo) -> None:
    assert "message" not in look(duo.desk, "activity", READER)[0]["kinds"]
    human = Caller(HUMAN, "r", "verified", "key", human=True)
    assert "message" in look(duo.desk, "activity", human)[0]["kinds"]


def test_nothing_passes_the_filter(duo: Duo) -> None:
    page, html = look(duo.desk, "activity", READER, repo="none")
    assert (page["changes"], "No change" in html) == ([], True)


@pytest.mark.parametrize("query", [{"after": "x"}, {"kind": "x"}])
def test_a_filter_that_is_none(duo: Duo, query: Any) -> None:
    with pytest.raises(InvalidInput):
        look(duo.desk, "activity", READER, **query)
