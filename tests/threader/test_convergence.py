"""Convergence and aborts (agent-threader-v2 §10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threader.convergence import depth, is_converging, no_convergence, repeated

FAILING = st.dictionaries(
    st.sampled_from("ABCD"), st.sampled_from(["timeout:x", "prompt_gap:y", "test_error:z"])
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"A": "t:x", "B": "t:y"}, {"A": "t:x"}, True),
        ({"A": "t:x", "B": "t:x"}, {"A": "t:x", "B": "t:y"}, True),
        ({"A": "contract_error:x"}, {"A": "test_error:y"}, True),
        ({"A": "test_error:y"}, {"A": "contract_error:x"}, False),
        ({"A": "t:x"}, {"A": "t:x"}, False),
        ({"A": "t:x"}, {"A": "t:other"}, False),
    ],
)
def test_evidence_of_convergence(
    before: dict[str, str], after: dict[str, str], expected: bool
) -> None:
    assert is_converging(before, after) is expected


@given(FAILING)
def test_an_unchanged_failing_set_never_converges(failing: dict[str, str]) -> None:
    assert not is_converging(failing, failing)


def reason(before: dict[str, str], after: dict[str, str], stalled: int, used: int = 1) -> str:
    return (
        no_convergence(
            before=before,
            after=after,
            stalled_rounds=stalled,
            rounds_used=used,
            max_rounds_per_window=2,
            max_total_rounds=8,
        )
        or ""
    )


def test_reasons() -> None:
    pair = {"A": "t:x", "B": "t:y"}
    assert "repeated same failure signatures" in reason(pair, pair, 2)
    assert "no reduction in failing task count" in reason({"A": "t:x"}, {"A": "t:x"}, 3)
    assert "budget exhausted" in reason({"A": "t:x"}, {"A": "t:x"}, 1, used=8)
    assert reason({"A": "t:x"}, {"A": "t:x"}, 2) == ""
    assert reason(pair, {}, 9) == ""


def test_depth_and_repeats() -> None:
    assert depth("contract_error:x") < depth("build_error:x") < depth("smoke_error:x")
    assert depth("invented:x") == depth("prompt_gap:x")
    assert repeated({"A": "x", "B": "x", "C": "y"}) == 1
