"""Failure signatures (agent-threader-v2 §10 "Failure Signature Generation")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threader.signatures import MAX_SIGNAL, one_line, primary_signal, signature, strip_ansi


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        ("no_sentinel", "build_error:no_sentinel"),
        ("Missing CN import", "build_error:missing_cn_import"),
        ("2026-03-20T15:21:00Z boom", "build_error:boom"),
        ("/home/me/repo/src/app.py:12:3 bad name", "build_error:app_py_bad_name"),
        ("WP-017: worker gave up", "build_error:worker_gave_up"),
        ("took 12.7 s at 0xdeadbeef", "build_error:took_s_at"),
        ("\x1b[31mred\x1b[0m alert", "build_error:red_alert"),
        ("   ", "build_error:unknown"),
    ],
)
def test_unstable_parts_go(signal: str, expected: str) -> None:
    assert signature("build_error", signal, "WP-017") == expected


def test_equal_causes_give_equal_signatures() -> None:
    one = "2026-01-01 10:00:00 /tmp/a1/x.py:10: error in WP-1 after 3.2s"
    two = "2026-02-03 11:10:09 /srv/b2/x.py:99: error in WP-1 after 14s"
    assert signature("c", one, "WP-1") == signature("c", two, "WP-1")


@given(st.text(max_size=5000), st.text(max_size=20))
def test_shape_and_stability(signal: str, task_id: str) -> None:
    mark = signature("timeout", signal, task_id)
    assert mark.startswith("timeout:")
    assert len(mark) <= len("timeout:") + MAX_SIGNAL
    assert mark == mark.lower()
    assert " " not in mark
    assert not any(ch.isdigit() for ch in mark)


def test_primary_signal_prefers_the_exception() -> None:
    log = "collected 3 items\nTraceback (most recent call last):\n  x\nKeyError: 'port'\n1 failed\n"
    assert primary_signal(log) == "KeyError: 'port'"
    assert primary_signal("ok\nsrc/a.ts(3): error TS2304: no name\ndone") == (
        "src/a.ts(3): error TS2304: no name"
    )
    assert primary_signal("just\nprose") == "prose"
    assert primary_signal("") == "no output"


def test_strip_ansi() -> None:
    assert strip_ansi("\x1b]0;title\x07\x1b[1;32mok\x1b[0m\x1b[2K") == "ok"


def test_one_line_has_nothing_that_steers_a_terminal() -> None:
    assert one_line(" a\n\tb\x1b[31mc\x1b]0;title\x07\x00\u202ed") == "a bcd"


def test_codes_of_errors_tell_failures_apart() -> None:
    found = {
        signature("build_error", f"error[{code}]: line 12 of /tmp/x/a.rs")
        for code in ("E0425", "E0433", "TS2304")
    }
    assert found == {
        "build_error:error_e0425_line_of_a_rs",
        "build_error:error_e0433_line_of_a_rs",
        "build_error:error_ts2304_line_of_a_rs",
    }
