"""Long answers in pages: bounded, fenced, and whole when they are put together."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.domain.untrusted import FENCE, Author, block, inline
from server.mcp_tools import pages
from server.mcp_tools.pages import InvalidMark, page


def follow(whole: str, limit: int) -> list[str]:
    """Every page of a text. Each shows what follows the page before, up to its mark."""
    shown: list[str] = []
    mark, start = None, 0
    while True:
        one = page(whole, mark, limit)
        shown.append(one.text)
        end = len(whole) if one.mark is None else int(one.mark.partition(".")[0])
        assert end > start
        # A fence that goes on is closed, in the place of the line's end.
        body = one.text if one.mark is None else one.text.removesuffix(f"\n{FENCE}")
        assert body.removesuffix("\n").endswith(whole[start:end].removesuffix("\n"))
        if one.mark is None:
            return shown
        mark, start = one.mark, end


AUTHOR = Author("aid://example.com/ana@1.0.0", "repo", "verified")
pieces = st.lists(
    st.one_of(
        st.text(max_size=3_000).map(lambda text: block(text, AUTHOR)),
        st.lists(st.text(max_size=200).map(inline), max_size=60).map(
            lambda names: f"- names: {', '.join(names)}"
        ),
        st.just("## A heading"),
    ),
    min_size=1,
    max_size=8,
)


@given(pieces, st.integers(700, 3_000))
@example([block("x" * 5_000, AUTHOR)], 700)
@example([block("\n" * 2_000, AUTHOR)], 700)
@example([block("`" * 2_000, AUTHOR), block("a\n```\n" * 200, AUTHOR)], 700)
def test_pages_are_bounded_and_fenced_and_make_the_whole(parts: list[str], limit: int) -> None:
    whole = "\n".join(parts)
    for text in follow(whole, limit):
        assert len(text) <= limit
        inside = False
        for line in text.split("\n"):
            if line.startswith(FENCE):
                inside = not inside
            elif inside:
                assert line.startswith("| "), "agents' text never stands at the margin"
            else:
                assert not line.startswith("| ")
                assert line.count("`") % 2 == 0, "no code span is cut"
        assert not inside, "every fence that a page opens, it closes"


def test_a_short_text_is_one_page() -> None:
    assert page("short", None) == pages.Page("short", None)


def test_a_text_that_has_changed_begins_again() -> None:
    whole = "\n".join(f"- line {number}" for number in range(500))
    mark = page(whole, None, 700).mark
    assert mark is not None
    grown = page(f"{whole}\n- a new line", mark, 700)
    assert grown.text.startswith(pages.CONTINUED), "what is added at the end changes nothing"
    changed = page(whole.replace("line 1\n", "line one\n"), mark, 700)
    assert changed.text.startswith(pages.CHANGED)
    assert "- line 0" in changed.text


@pytest.mark.parametrize("mark", ["", "x", "12", "-1.00000000", "12.zzz", "1" * 30 + ".00000000"])
def test_a_mark_that_no_page_gave(mark: str) -> None:
    with pytest.raises(InvalidMark):
        page("a" * 50_000, mark)
