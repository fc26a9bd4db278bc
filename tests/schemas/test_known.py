"""The handshake's models (CACP 2.0, Trust Levels)."""

import pytest
from pydantic import ValidationError

from schemas.known import Challenge, KnownGrant, KnownParams

AGENT = "aid://example.com/frontend@1.0.0"


@pytest.mark.parametrize(
    "nonce", ["", "x" * 31, "x" * 129, "x" * 31 + "/", "../" * 20, "x" * 32 + "\n", "é" * 40]
)
def test_a_nonce_is_long_and_plain(nonce: str) -> None:
    """It becomes part of a path that the node calls."""
    with pytest.raises(ValidationError):
        KnownParams.model_validate({"agentId": AGENT, "nonce": nonce})


def test_the_models_read_what_they_write() -> None:
    params = KnownParams.model_validate({"agentId": AGENT, "nonce": "aZ09_-" * 6})
    assert params.agent_id == AGENT
    challenge = {"agentId": AGENT, "node": "http://node.example", "more": 1}
    assert Challenge.model_validate(challenge).node == "http://node.example"
    granted = KnownGrant(key="cacp_sk_x", expires_in=60).model_dump(by_alias=True)
    assert granted == {"key": "cacp_sk_x", "trust": "known", "expiresIn": 60}
