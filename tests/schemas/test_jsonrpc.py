"""JSON-RPC 2.0, section 4: what a request object is."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ErrorCode
from schemas.jsonrpc import DEPTH_MAX, Call, InvalidParams, InvalidRpcRequest, check, error, is_deep

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def request(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "m", "id": 1} | members


@pytest.mark.parametrize("id", ["a", "", 1, 0, -3, 1.5, 2**53, 2**63, None])
def test_an_id_is_a_string_a_number_or_null(id: Any) -> None:
    """JSON-RPC 2.0, section 4: id."""
    assert check(request(id=id)) == Call("m", {}, id, notification=False)


@pytest.mark.parametrize("id", [True, False, [], {}, [1], {"a": 1}, 2.0**64])
def test_no_other_id_is_taken_and_none_is_echoed(id: Any) -> None:
    with pytest.raises(InvalidRpcRequest) as refused:
        check(request(id=id))
    assert refused.value.id is None


def test_a_number_too_large_to_echo_is_told_from_what_is_no_id() -> None:
    with pytest.raises(InvalidRpcRequest, match=r"at most 2\^53"):
        check(request(id=1e29))
    with pytest.raises(InvalidRpcRequest, match="a string, a number or null"):
        check(request(id=[]))


def test_without_an_id_it_is_a_notification() -> None:
    """JSON-RPC 2.0, section 4.1."""
    assert check({"jsonrpc": "2.0", "method": "m"}).notification


def test_params_by_name_are_kept_and_may_be_left_out() -> None:
    """JSON-RPC 2.0, section 4.2."""
    assert check(request(params={"a": 1})).params == {"a": 1}
    assert check(request()).params == {}


def test_params_that_are_null_are_absent() -> None:
    """Design §5: null means absent."""
    assert check(request(params=None)) == check(request())


def test_params_by_position_are_refused_as_params() -> None:
    with pytest.raises(InvalidParams, match="by name") as refused:
        check(request(params=[1, 2]))
    assert (refused.value.id, refused.value.notification) == (1, False)


@pytest.mark.parametrize("params", [1, "a", True, False, 0, ""])
def test_params_of_no_structure_make_the_request_invalid(params: Any) -> None:
    """JSON-RPC 2.0, section 4: params is a structured value."""
    with pytest.raises(InvalidRpcRequest, match="params"):
        check(request(params=params))


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (request(jsonrpc="1.0"), "jsonrpc"),
        (request(jsonrpc=2.0), "jsonrpc"),
        ({"method": "m", "id": 1}, "jsonrpc"),
        (request(method=1), "method"),
        ({"jsonrpc": "2.0", "id": 1}, "method"),
        (request(extra=1), "extra"),
    ],
)
def test_a_broken_request_is_refused_with_its_id_and_what_is_wrong(
    broken: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidRpcRequest, match=named) as refused:
        check(broken)
    assert refused.value.id == 1


@pytest.mark.parametrize("value", [None, 1, "a", True, [], 1.5])
def test_only_an_object_is_a_request(value: Any) -> None:
    with pytest.raises(InvalidRpcRequest, match="object"):
        check(value)


@given(
    JSON
    | st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | JSON,
            "method": st.text() | JSON,
            "params": JSON,
            "id": JSON,
        },
    )
)
def test_whatever_comes_is_a_call_or_refused(value: Any) -> None:
    with suppress(InvalidRpcRequest, InvalidParams):
        call = check(value)
        assert call.params == (value.get("params") or {})
        assert call.notification == ("id" not in value)


def test_an_error_has_code_and_message_and_data_only_when_there_is_some() -> None:
    """JSON-RPC 2.0, section 5.1."""
    assert error(ErrorCode.CONFLICT, "taken", id="x") == {
        "jsonrpc": "2.0",
        "error": {"code": -32004, "message": "taken"},
        "id": "x",
    }
    assert error(ErrorCode.CONFLICT, "taken", {"reason": "r"})["error"]["data"] == {"reason": "r"}


def nested(levels: int, array: bool) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [0, value] if array else {"a": value, "b": "c"}
    return value


@pytest.mark.parametrize("array", [True, False])
def test_params_may_nest_as_deep_as_the_limit(array: bool) -> None:
    assert not is_deep(nested(DEPTH_MAX, array))
    assert is_deep(nested(DEPTH_MAX + 1, array))
    assert is_deep({"wide": [1] * 1000, "deep": nested(5_000, array)})


@pytest.mark.parametrize("value", [{}, [], 1, "[[[[", None, {"a": []}])
def test_what_is_flat_is_not_deep(value: Any) -> None:
    assert not is_deep(value)
