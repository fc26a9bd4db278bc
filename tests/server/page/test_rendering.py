"""Templates escape, and say how old things are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from server.page.rendering import (
    aged,
    agent_name,
    ago,
    lasting,
    moment,
    page_query,
    short_agent,
    state_badge,
    templates,
)

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


def parts(call: str, **shown: object) -> str:
    """A macro's output."""
    source = f'{{% import "parts.html" as parts with context %}}{{{{ parts.{call} }}}}'
    known: dict[str, object] = {"aged": None, "duration": None, "path": "/ui/x", "query": {}}
    return templates().from_string(source).render(known | shown)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-400, "now"),
        (0, "now"),
        (59, "now"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 hour"),
        (7_200, "2 hours"),
        (86_400, "1 day"),
        (400 * 86_400, "400 days"),
    ],
)
def test_an_age_is_in_its_largest_unit(seconds: int, shown: str) -> None:
    assert ago(NOW, NOW - seconds * SECOND) == shown
    assert ago(NOW, moment(NOW - seconds * SECOND)) == shown


@pytest.mark.parametrize(
    ("agent_id", "shown"),
    [
        ("aid://example.com/web@1.0.0", "web"),
        ("aid://example.com/web", "web"),
        ("aid://example.com/", "aid://example.com/"),
        ("somebody", "somebody"),
    ],
)
def test_an_agent_is_named_by_the_last_part_of_its_id(agent_id: str, shown: str) -> None:
    assert short_agent(agent_id) == shown


@given(st.text())
def test_no_text_of_an_agent_is_markup(value: str) -> None:
    html = parts("text(value, by=value, trust=value)", value=value)
    for hostile in ("<script", "<img", "<b>"):
        assert hostile not in html
    inside = html.replace("<blockquote", "").replace("</blockquote", "")
    for tag in ("p", "footer", "bdi", "span"):
        inside = inside.replace(f"<{tag}", "").replace(f"</{tag}", "")
    assert "<" not in inside


def test_a_text_carries_its_author_and_trust() -> None:
    html = parts("text('hello', by='aid://example.com/web@1.0.0', trust='peer')")
    assert '<bdi class="agent" title="aid://example.com/web@1.0.0">web</bdi>' in html
    assert 'data-trust="peer"' in html


def test_the_smallest_parts_escape_what_they_are_given() -> None:
    hostile = "<b title='\"'>"
    for made in (agent_name(hostile), state_badge(hostile), state_badge("x", hostile)):
        assert "<b " not in made
    assert state_badge("in_time") == '<span class="badge" data-state="in_time">in time</span>'
    assert aged(NOW, NOW - 60 * SECOND).endswith(">1 min ago</time>")


def test_members_of_a_dict_come_before_its_methods_unless_these_have_their_name() -> None:
    shown = {"title": "a", "items": "b"}
    made = templates().from_string(
        "{{ page.title }}{{ page['items'] }}{% for k, v in page.items() %}{{ k }}{% endfor %}"
    )
    assert made.render(page=shown) == "abtitleitems"
    with pytest.raises(UndefinedError):
        templates().from_string("{{ page.missing }}").render(page=shown)


def test_what_a_template_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        templates().from_string("{{ missing }}").render()


def test_a_page_goes_on_with_its_other_filters() -> None:
    assert page_query({"q": "a b", "after": "1"}, "after", "2") == "q=a+b&after=2"
    assert page_query({"q": "a b", "after": "1"}, "after", None) == "q=a+b"
    html = parts("pager('9&<')", query={"kind": "mail"}, page_query=page_query)
    assert 'href="/ui/x?kind=mail&amp;after=9%26%3C"' in html
    assert parts("pager(none)") == ""


def test_an_age_and_a_duration_differ_in_words() -> None:
    """ "built 3 min ago", and "waits 3 min"."""
    since = NOW - 180 * SECOND
    assert ">3 min ago</time>" in aged(NOW, since)
    assert ">3 min</time>" in lasting(NOW, since)
    assert ">now</time>" in aged(NOW, NOW)
