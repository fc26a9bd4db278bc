"""The models of reports and dispatches."""

import pytest

from schemas import wire_message
from schemas.wire_message import Report, WireError, allowed, make_message, shortened


def test_failing_names_the_fields_that_say_fail() -> None:
    tests = wire_message.Tests(outcome="fail", count=3)
    assert Report(status="ok", tests=tests, build="pass").failing == ("TESTS",)
    assert Report(status="ok", tests=tests, build="fail").failing == ("TESTS", "BUILD")
    assert Report(status="ok").failing == ()


def test_a_wrong_member_is_an_error_with_its_line() -> None:
    with pytest.raises(WireError) as caught:
        make_message("STATUS", {"status": "ok", "build": "purple", "extra": {}}, {"BUILD": 7})
    assert str(caught.value) == f"line 7: BUILD is 'purple'; allowed: {allowed('BUILD')}"


def test_values_are_shortened_for_errors() -> None:
    assert shortened(None) == "missing"
    assert shortened("x") == "'x'"
    assert len(shortened("x" * 100)) == 60
