"""The forms of actions as templates make them (`parts.action`)."""

from types import SimpleNamespace
from typing import Any

from server.auth.authenticator import Caller
from server.page.rendering import templates
from server.page.viewer import Viewer

HUMAN = Caller("aid://example.com/ann", "", "verified", "key", human=True)
PERSON = Viewer(HUMAN, "token", 1)


def form(call: str, viewer: Viewer | None = PERSON, **more: Any) -> str:
    source = '{% import "parts.html" as parts with context %}{{ ' + call + " }}"
    shown = {"path": "/ui/mail", "query": SimpleNamespace(), "viewer": viewer} | more
    return str(templates().from_string(source).render(shown)).strip()


def test_a_form_carries_the_token_its_id_and_the_way_back() -> None:
    html = form(
        'parts.action("replay", {"message_id": "<m>", "gone": none})', query="after=1&b=<x>"
    )
    assert '<form method="post" action="/ui/actions/replay">' in html
    assert 'name="csrf" value="token"' in html
    assert 'name="next" value="/ui/mail?after=1&amp;b=&lt;x&gt;"' in html
    assert 'name="message_id" value="&lt;m&gt;"' in html
    assert "gone" not in html
    assert "<details" not in html
    other = form('parts.action("replay", {"message_id": "m"})', query="")
    assert html.split('name="once" value="')[1][:16] != other.split('name="once" value="')[1][:16]


def test_what_asks_or_is_final_opens_first() -> None:
    asking = form(
        'parts.action("answer", {}, ask="answer", ask_label="Your answer", required=true)'
    )
    assert "<details" in asking
    assert 'name="answer" maxlength="2000" required>' in asking
    final = form('parts.action("revoke", {"agentId": "a"}, label="Revoke")')
    assert "<details" in final
    assert '<button class="danger">Revoke</button>' in final


def test_who_may_not_act_sees_no_form_and_a_reason_stands_in_its_place() -> None:
    for viewer in (None, Viewer(HUMAN), Viewer(Caller("a", "r", "verified", "key"), "token")):
        assert form('parts.action("replay", {"message_id": "m"})', viewer) == ""
    assert form('parts.action("agree", {}, unless="Your key holds no repo")') == (
        '<p class="soft">Your key holds no repo</p>'
    )
