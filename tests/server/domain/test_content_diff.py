"""The differences between two contents."""

from hypothesis import given
from hypothesis import strategies as st

from server.domain.content_diff import LINES_MAX, WIDTH_MAX, bounded_diff, content_diff

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=8,
)
contents = st.dictionaries(st.text("abc", min_size=1, max_size=2), values, max_size=4)


def test_it_names_what_changed_by_its_path() -> None:
    before = {"path": "/a", "body": {"n": 1, "gone": True}}
    after = {"path": "/a", "body": {"n": 2, "new": [1]}}
    assert content_diff(before, after) == (
        "- body.n: 1",
        "+ body.n: 2",
        "- body.gone: true",
        "+ body.new: [1]",
    )


def test_another_type_is_a_difference() -> None:
    assert content_diff({"n": 1}, {"n": "1"}) == ("- n: 1", '+ n: "1"')
    assert content_diff({"n": 1}, {"n": True}) == ("- n: 1", "+ n: true")


@given(contents)
def test_equal_contents_have_none(content: dict[str, object]) -> None:
    assert content_diff(content, dict(content)) == ()


@given(contents, contents)
def test_both_directions_have_as_many(before: dict[str, object], after: dict[str, object]) -> None:
    forth, back = content_diff(before, after), content_diff(after, before)
    assert len(forth) == len(back)


def test_a_long_one_is_cut() -> None:
    diff = bounded_diff({}, {str(n): "x" * 1_000 for n in range(100)})
    assert len(diff.lines) == LINES_MAX
    assert max(map(len, diff.lines)) == WIDTH_MAX
    assert diff.more == 101 - LINES_MAX
