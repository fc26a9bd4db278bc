"""The conservative repair (agent-threader-v2 §5)."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.growth import grows_linearly
from threader.repair import repair

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_valid_json_keeps_its_meaning(value: object) -> None:
    assert json.loads(repair(json.dumps(value).encode())) == value


@given(VALUES)
def test_trailing_commas_and_comments_go(value: object) -> None:
    text = f"/* head */ [{json.dumps(value)}, // tail\n ]"
    assert json.loads(repair(text.encode())) == [value]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('```json\n{"a": "```"}\n```\n', {"a": "```"}),
        ('{"a": [1, /* , */ 2, ], }', {"a": [1, 2]}),
        ('{"url": "http://x//y", "c": "/* no */"}', {"url": "http://x//y", "c": "/* no */"}),
        ('{"quote": "\\"// in\\"",}', {"quote": '"// in"'}),
    ],
)
def test_examples(text: str, expected: object) -> None:
    assert json.loads(repair(text.encode())) == expected


FENCE = re.compile(rb"\A\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*\Z", re.DOTALL)
"""An outer fence, said in one expression that takes quadratic time."""


@given(st.lists(st.sampled_from(["```", "``", "json", " ", "\t", "\n", "\r\n", "{}", "x"])))
def test_an_outer_fence_goes_with_its_line_ends(parts: list[str]) -> None:
    text = "".join(parts).encode()
    fenced = FENCE.match(text)
    assert repair(text) == (fenced[1] if fenced else text)


@pytest.mark.parametrize("opening", [b"", b"```\n", b"```json\n"])
def test_much_white_space_is_left_as_it_is(opening: bytes) -> None:
    text = opening + b" " * 200_000 + b"x"
    assert repair(text) == text


@pytest.mark.soak
@pytest.mark.parametrize("opening", [b"", b"```\n"])
@pytest.mark.parametrize(
    "unit", [b" ", b"\n", b"\n ```  ", b"/*", b'"\\', b'\\"', b", ", b'"', b"//", b"```\n"]
)
def test_hostile_text_costs_linear_time(unit: bytes, opening: bytes) -> None:
    assert grows_linearly(lambda size: repair(opening + unit * size + b"x"), 60_000)
