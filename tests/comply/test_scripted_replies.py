"""What a test itself answers to the agent's requests."""

from typing import Any

import pytest

from comply.scripted_replies import ScriptedReply, answer_of, scripted_replies
from schemas.jsont import ComplianceTest


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"content": "x"}, {"result": {"content": "x"}}),
        ({"result": {"content": "x"}}, {"result": {"content": "x"}}),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, {"result": {}}),
        (
            {"error": {"code": -32000, "message": "no"}},
            {"error": {"code": -32000, "message": "no"}},
        ),
        ({"result": 1, "more": 2}, {"result": {"result": 1, "more": 2}}),
        (None, {"result": None}),
        ([], {"result": []}),
    ],
)
def test_a_reply_is_an_answer_or_its_result(reply: Any, answer: Any) -> None:
    assert answer_of(reply) == answer


CANCEL = {"send": {"method": "session/cancel"}}
ASKED: Any = {"clientRequest": {"method": "permission"}}


@pytest.mark.parametrize(
    ("message", "after", "wanted"),
    [
        (ASKED, [], []),
        (
            ASKED,
            [{"delayMs": 5}, CANCEL],
            [ScriptedReply({"method": "permission"}, None, late=True)],
        ),
        (ASKED, [{"forbid": {"methods": []}}, CANCEL], []),
        (ASKED | {"late": True}, [], [ScriptedReply({"method": "permission"}, None, late=True)]),
        (ASKED | {"reply": 1}, [CANCEL], [ScriptedReply({"method": "permission"}, {"result": 1})]),
        (
            {"clientRequest": {"method": "permission", "reply": {"result": 1}}},
            [],
            [ScriptedReply({"method": "permission"}, {"result": 1})],
        ),
        ({"response": {}}, [CANCEL], []),
    ],
)
def test_what_a_test_answers_and_when(message: Any, after: list[Any], wanted: Any) -> None:
    steps = [{"expect": {"messages": [message]}}, *after]
    test = {"title": "t", "severity": "required", "steps": steps}
    assert scripted_replies(ComplianceTest.model_validate(test)) == wanted
