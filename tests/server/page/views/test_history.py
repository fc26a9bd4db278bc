"""A project as it was, as a page with a scrubber."""

from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import InvalidInput
from server.page.view import url_of
from tests.server.methods.cacp.duo import Duo
from tests.server.page.views.look import Markup, look
from tests.support.in_process_node import ANA

READER = Caller(ANA, "api", "verified", "key")


def history(duo: Duo, **query: str) -> tuple[Any, str]:
    return look(duo.desk, "history", READER, {"project_id": duo.project}, **query)


def test_the_scrubber_leads_through_the_changes(duo: Duo) -> None:
    duo.agreed("Login")
    page, html = history(duo, change="3")
    state = page["state"]
    assert 'max="4" value="3"' in html
    assert "Change 3 of 4" in html
    for beside in ("previous", "next"):
        link = url_of("history", project_id=duo.project, at=state[beside])
        assert link.replace("&", "&amp;") in html or link in Markup(html).links
    assert "proposed" in html[html.index("Done then") :]


def test_a_time_is_a_permalink(duo: Duo) -> None:
    duo.agreed("Login")
    third = history(duo, change="3")[0]["state"]
    assert history(duo, at=third["changedAt"])[0]["state"] == third
    assert 'rel="next"' not in history(duo)[1], "the latest by default"


def test_it_says_what_is_not_kept(duo: Duo) -> None:
    contract = duo.proposed()
    duo.ben("contract/respond", contractId=contract, action="request_change", comment="c")
    at = history(duo)[0]["state"]["changedAt"]
    assert "What is not kept" not in history(duo)[1]
    duo.ben("contract/respond", contractId=contract, action="agree")
    assert "What is not kept" in history(duo, at=at)[1]


@pytest.mark.parametrize("query", [{"change": "x"}, {"change": "0"}, {"at": "yesterday"}])
def test_a_place_that_is_none(duo: Duo, query: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        history(duo, **query)
