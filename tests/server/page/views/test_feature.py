"""A project's board as a page: who blocks it, the contracts, what was done."""

from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Forbidden, NotFound
from server.page.view import url_of
from tests.server.methods.cacp.duo import Duo
from tests.server.page.views.look import Markup, look
from tests.support.in_process_node import ANA

READER = Caller(ANA, "api", "verified", "key")
HOSTILE = "<script>alert(1)</script>\u202e<img src=x onerror=alert(1)>" + "W" * 120


def feature(duo: Duo, caller: Caller = READER, **query: str) -> tuple[Any, str]:
    return look(duo.desk, "feature", caller, {"project_id": duo.project}, **query)


def test_it_names_who_blocks_before_anything_else(duo: Duo) -> None:
    duo.proposed("Login")
    duo.verified("Logout")
    page, html = feature(duo)
    assert "1 of 2" in html
    blockers = html[html.index("Who blocks it") : html.index("<h2>Contracts")]
    assert "web" in blockers
    assert "1 contract waits" in blockers
    assert "respond 1" in blockers
    assert page["board"]["repos"][0]["name"] == "web"


def test_nobody_blocks_a_project_that_is_verified(duo: Duo) -> None:
    duo.verified()
    _, html = feature(duo)
    assert "Who blocks it" not in html
    assert "No contract waits for anybody" in html


def test_an_empty_project_says_what_to_do(duo: Duo) -> None:
    _, html = feature(duo)
    assert "There is no contract yet" in html
    assert "cacp/contract/propose" in html


def test_a_column_leads_to_the_rest_of_it(duo: Duo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.page.views.feature.PER_COLUMN", 1)
    monkeypatch.setattr("server.page.views.feature.PER_PAGE", 2)
    for name in "abc":
        duo.proposed(name)
    _, html = feature(duo)
    rest = url_of("feature", project_id=duo.project, state="proposed")
    assert rest in Markup(html).links
    page, html = feature(duo, state="proposed")
    [column] = page["board"]["columns"]
    assert [contract["name"] for contract in column["contracts"]] == ["a", "b"]
    page, html = feature(duo, state="proposed", after=column["nextCursor"])
    assert [contract["name"] for contract in page["board"]["columns"][0]["contracts"]] == ["c"]
    assert 'rel="next"' not in html


def test_questions_and_decisions_are_marked_with_who_wrote_them(duo: Duo) -> None:
    duo.ana("context/askQuestion", question="Before tax?", urgent=True)
    duo.ben("context/recordDecision", decision="Money", chosen="cents", rationale="r")
    _, html = feature(duo)
    question = html[html.index("Open questions") : html.index("Decisions")]
    assert "Before tax?" in question
    assert f'title="{ANA}"' in question
    assert "Money: cents" in html


def test_hostile_names_are_text(duo: Duo) -> None:
    duo.ana("project/addRepo", repo={"name": HOSTILE, "role": HOSTILE, "language": "l"})
    duo.proposed(HOSTILE)
    duo.ana("context/askQuestion", question=HOSTILE * 50)
    duo.ana("contract/propose", type="custom", name="javascript:alert(1)", content={})
    _, html = feature(duo)
    markup = Markup(html)
    assert markup.tags.count("script") == 2, "those of the page itself"
    assert "img" not in markup.tags
    assert not any(link.lower().startswith("javascript") for link in markup.links)


def test_only_who_may_read_the_project_sees_it(duo: Duo) -> None:
    narrow = Caller(ANA, "api", "verified", "key", frozenset({"other"}))
    with pytest.raises(Forbidden):
        feature(duo, narrow)
    with pytest.raises(NotFound):
        look(duo.desk, "feature", READER, {"project_id": "none"})
