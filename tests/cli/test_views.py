"""Tables and stories, drawn."""

import doctest
import io

from rich.console import Console, RenderableType

from cli import views


def drawn(what: RenderableType, width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(what)
    return out.getvalue()


def test_the_examples_hold() -> None:
    assert doctest.testmod(views).failed == 0


def test_a_lost_version_stands_beside_the_current_one() -> None:
    contract = {
        "name": "GET /x",
        "type": "api_endpoint",
        "status": "proposed",
        "contract_id": "c",
        "version": 2,
        "content": {"now": 1},
        "implementations": [],
    }
    lost = {
        "version": 2,
        "proposedBy": "r2",
        "timestamp": "2026-01-01T00:00:00+00:00",
        "changeNotes": "mine",
        "content": {"lost": "\x1b[31m"},
        "parties": ["r2", "r1"],
        "currentParties": ["r1"],
    }
    project = {"name": "P", "repos": [{"repo_id": "r2", "name": "frontend", "agent_id": None}]}
    told = {"parties": ["r2"], "timeline": [], "conflicts": [lost]}
    text = drawn(views.contract_story(contract, told, project, [], 160))
    assert "Version 2 lost a race" in text
    assert "by frontend at" in text
    assert ", for frontend, r1: mine" in text
    assert '"lost"' in text
    assert "nobody yet" in text
    assert "\x1b" not in text


def test_a_narrow_terminal_cuts_names_not_what_counts() -> None:
    id = "01a20041-bb22-7364-86db-6c4dcd2d0343"
    found = {
        "contractId": id,
        "name": "GET /a/very/long/path/" + "x" * 60,
        "type": "api_endpoint",
        "version": 2,
        "status": "negotiating",
        "proposedBy": "r1",
    }
    narrow = drawn(views.contracts([found | {"proposedByName": "backend-api"}], 80), 80)
    assert narrow.count("\n") == 2
    for part in (id[:18], "GET /a", "2", "● negotiating"):
        assert part in narrow
    assert id in drawn(views.contracts([found], 160), 160)
    assert "api_endpoint" in drawn(views.contracts([found], 160), 160)


def test_a_status_that_is_not_known_is_shown_as_it_is() -> None:
    assert views.status_mark("shelved\x07").plain == "● shelved"


def test_a_listing_is_shown_as_data() -> None:
    protocols = [{"type": "cacp", "endpoint": "http://a.example"}, {"type": "rest"}]
    listing = {
        "aid": "aid://a\x1b[31m",
        "name": "[bold]A\nB",
        "manifest": {"invocation": {"protocols": protocols}},
    }
    shown = drawn(views.listings([listing, {"aid": "b", "verified": True, "manifest": {}}]))
    assert [line.split() for line in shown.splitlines()] == [
        ["AGENT", "NAME", "ENDPOINT", "KEYED"],
        ["aid://a", "[bold]A", "B", "http://a.example", "no"],
        ["b", "yes"],
    ]
