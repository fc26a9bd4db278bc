"""What templates get of Jinja."""

import pytest
from jinja2 import UndefinedError

from server.page.environment import PageTemplates


def test_text_is_escaped_and_an_absent_name_is_an_error() -> None:
    made = PageTemplates()
    assert made.from_string("{{ text }}").render(text="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        made.from_string("{{ absent }}").render()


def test_members_of_a_dict_come_before_attributes() -> None:
    text = PageTemplates().from_string("{{ shown.title }} {{ shown.items() | list }}")
    assert text.render(shown={"title": "x"}) == "x [(&#39;title&#39;, &#39;x&#39;)]"


def test_a_call_may_have_arguments_of_any_kind() -> None:
    made = PageTemplates()
    made.globals["joined"] = lambda *parts, end: "-".join(parts) + end
    assert made.from_string("{{ joined('a', 'b', end='!') }}").render() == "a-b!"
