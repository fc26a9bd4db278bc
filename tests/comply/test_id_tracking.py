"""Tracking of JSON-RPC ids (JSON-RPC 2.0, §4 and §5)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comply.id_tracking import Said, follow


def sent(**fields: Any) -> Said:
    return True, {"jsonrpc": "2.0", **fields}


def heard(**fields: Any) -> Said:
    return False, {"jsonrpc": "2.0", **fields}


def problems(*said: Said) -> list[str]:
    return [entry.problem for entry in follow(said) if entry.problem]


ASKED = sent(id=1, method="a")


@pytest.mark.parametrize(
    "said",
    [
        [ASKED, heard(id=1, result=None)],
        [ASKED, heard(id=1.0, result=None)],
        [ASKED, heard(id=1, error={"code": 1, "message": ""})],
        [ASKED, heard(method="u"), heard(id=1, method="ask"), sent(id=1, result={})],
        [heard(id="x", method="ask"), sent(id="x", result=1), heard(id="x", method="ask")],
        [ASKED, heard(id=1, result=1), ASKED, heard(id=1, result=1)],
        [(True, "no JSON"), heard(id=None, error={"code": -32700, "message": "Parse error"})],
        [sent(id=4), heard(id=4, error={"code": -32600, "message": "Invalid"})],
        [(True, [ASKED[1]]), heard(id=1, result=1)],
        [sent(id=None, method="a"), heard(id=None, result=1)],
    ],
)
def test_what_json_rpc_allows(said: list[Said]) -> None:
    assert problems(*said) == []


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ([heard(id=1, result=1)], "answers request 1, which was never sent"),
        ([ASKED, heard(id="1", result=1)], 'answers request "1", which was never sent'),
        ([ASKED, heard(id=1, result=1), heard(id=1, result=1)], "answers request 1 again"),
        (
            [sent(method="n"), heard(id=None, error={"code": 1, "message": ""})],
            "answers request null, which was never sent",
        ),
        ([ASKED, heard(result=1)], "an answer has no id"),
        ([ASKED, heard(id=True, result=1)], "id should be a string, a whole number or null"),
        ([heard(id=1.5, method="a")], "id should be a string, a whole number or null"),
        ([ASKED, heard(id=1)], "a message has neither method nor result nor error"),
        ([ASKED, heard(id=1, result=1, error={})], "a message has both result and error"),
        ([heard(id=1, method="a", result=1)], "a has a method and a result"),
        ([heard(id=1, method=2)], "method should be a string"),
        ([heard(method="a", params=1)], "a: params should be an object or a list"),
        (
            [heard(id=7, method="a"), heard(id=7, method="b")],
            "b has the id 7 of a request that still waits",
        ),
        ([(False, {"id": 1, "method": "a"})], 'jsonrpc should be "2.0"'),
        ([(False, [])], "a line is not a message: a list"),
        ([(False, "starting")], "a line is not a message: starting"),
    ],
)
def test_what_json_rpc_forbids(said: list[Said], problem: str) -> None:
    assert problems(*said) == [problem]


def test_an_answer_is_told_its_request() -> None:
    entries = list(follow([ASKED, heard(id=1, result=2)]))
    assert entries[1].request == ASKED[1]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(allow_nan=False)
    | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), inner
        )
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.booleans(), JSON), max_size=6))
def test_whatever_is_said_each_message_has_its_entry(said: list[Said]) -> None:
    entries = list(follow(said))
    assert [(one.sent, one.message) for one in entries] == said
    assert not any(one.problem for one in entries if one.sent)


@given(st.lists(st.integers(0, 5), max_size=8), st.randoms())
def test_each_answer_beyond_the_requests_is_found(ids: list[int], order: Any) -> None:
    """As many answers as requests of an id are right, in any order; each more is one problem."""
    answers = [heard(id=id, result=0) for id in ids for _ in range(2)]
    order.shuffle(answers)
    assert len(problems(*(sent(id=id, method="a") for id in ids), *answers)) == len(ids)
