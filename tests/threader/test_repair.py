"""The conservative repair (agent-threader-v2 §5)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.soak
@pytest.mark.parametrize("unit", [b"/*", b'"\\', b'\\"', b", ", b'"', b"//", b"```\n"])
def test_hostile_text_costs_linear_time(unit: bytes) -> None:
    began = time.perf_counter()
    repair(unit * 500_000)
    assert time.perf_counter() - began < 3
