"""A test in words."""

from comply.explain import explain
from comply.files import SUITES, load


def test_each_step_is_said_with_its_clause() -> None:
    text = explain(load(SUITES / "cacp-2.0" / "contract.agree.jsont"))
    assert text.startswith("cacp-2.0/contract.agree: Agree to a contract\n\nagree answers")
    assert "Clause: cacp-2.0.md#cacpcontractrespond" in text
    assert "keep result.projectId as ${projectId}" in text
    assert "send as second" in text


def test_a_bare_variable_is_shown_as_it_was_written() -> None:
    text = explain(load(SUITES / "json-rpc-2.0" / "batch.empty.jsont"))
    assert "POST / []" in text
    assert "\ue000" not in text
