"""A next call, as a model reads it."""

from server.domain.next_call import next_call


def test_a_call_with_what_the_model_decides() -> None:
    assert next_call("acp_inbox", {}) == "acp_inbox with `{}`"
    step = next_call("t", {"id": "a`b"}, {"x": "one", "y": "two"})
    assert step == 't with `{"id": "a\\u0060b"}`; you decide x: one; y: two'
