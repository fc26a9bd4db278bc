"""Context packets and their methods (CACP 2.0, ContextPacket; Context Methods)."""

from typing import Any

import pytest

from schemas.context import (
    AskQuestionParams,
    ContextPacket,
    ListContextParams,
    RecordDecisionParams,
    ShareParams,
)
from tests.schemas.refusals import refusal, without

SHARE: dict[str, Any] = {
    "projectId": "f0ebc7e6",
    "type": "code_snippet",
    "content": {
        "language": "python",
        "file": "auth/jwt.py",
        "snippet": "def verify_token(token: str) -> dict: ...",
        "explanation": "JWT verification function for authentication",
    },
    "relatedContracts": ["695296cc"],
}
QUESTION: dict[str, Any] = {
    "projectId": "f0ebc7e6",
    "question": "Should we use JWT or session cookies for auth?",
    "options": ["JWT tokens", "Session cookies", "OAuth tokens"],
    "urgent": False,
    "relatedContracts": ["695296cc"],
}
DECISION: dict[str, Any] = {
    "projectId": "f0ebc7e6",
    "decision": "Authentication method",
    "chosen": "JWT tokens",
    "rationale": "Better for stateless API, works across services",
    "implications": ["Frontend must store token securely"],
    "relatedContracts": ["695296cc"],
}


def test_the_specs_examples_are_accepted() -> None:
    assert ShareParams.model_validate(SHARE).reply_to is None
    assert AskQuestionParams.model_validate(QUESTION).options == QUESTION["options"]
    assert RecordDecisionParams.model_validate(DECISION).chosen == "JWT tokens"


def test_what_the_spec_marks_as_optional_may_be_absent() -> None:
    packet = ContextPacket.model_validate(
        {
            "packet_id": "k1",
            "from_repo": "r1",
            "from_agent": "aid://example.com/api@1.0.0",
            "timestamp": "2026-02-21T09:30:00",
            "type": "question",
            "content": {},
        }
    )
    assert (packet.related_contracts, packet.reply_to) == ([], None)
    assert ListContextParams.model_validate({"projectId": "p"}).limit == 50


@pytest.mark.parametrize(
    ("sent", "where", "message"),
    [
        (SHARE | {"type": "gossip"}, "type", "Input should be 'code_snippet', 'type_definition'"),
        (SHARE | {"content": []}, "content", "Input should be a valid dictionary"),
        (SHARE | {"relatedContracts": "c1"}, "relatedContracts", "Input should be a valid list"),
        (without(SHARE, "content"), "content", "Field required"),
    ],
)
def test_a_packet_is_refused_where_it_is_wrong(
    sent: dict[str, Any], where: str, message: str
) -> None:
    place, said = refusal(ShareParams, sent)
    assert place == where
    assert said.startswith(message)


def test_since_is_a_time() -> None:
    place, said = refusal(ListContextParams, {"projectId": "p", "since": "today"})
    assert place == "since"
    assert "should be an ISO 8601 time" in said
