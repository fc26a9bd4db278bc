"""Agent ids (CACP 2.0, Agent ID)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.agents import canonical, check_canonical, identity, look_alike, same_agent
from server.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("agent_id", "known_as"),
    [
        ("aid://example.com/backend-agent@1.0.0", "aid://example.com/backend-agent"),
        ("aid://mycompany.io/frontend-react@2.1.0-rc.1", "aid://mycompany.io/frontend-react"),
        ("aid://example.com/backend-agent", "aid://example.com/backend-agent"),
        ("aid://user@example.com/backend", "aid://user@example.com/backend"),
        ("backend@host", "backend@host"),
        ("", ""),
    ],
)
def test_the_identity_is_the_id_without_its_version(agent_id: str, known_as: str) -> None:
    assert identity(agent_id) == known_as


def test_an_upgraded_agent_is_the_same_one() -> None:
    assert same_agent("aid://example.com/api@1.0.0", "aid://example.com/api@2.0.0")
    assert same_agent("aid://example.com/api", "aid://example.com/api@2.0.0")
    assert not same_agent("aid://example.com/api@1.0.0", "aid://example.com/web@1.0.0")
    assert not same_agent("aid://example.com/api@1.0.0", "aid://example.org/api@1.0.0")


def test_ids_that_are_no_aid_are_compared_whole() -> None:
    """Not every deployed agent id is an AID (design §5)."""
    assert not same_agent("backend@1", "backend@2")


PLAIN = "aid://example.com/api@1.0.0"


@pytest.mark.parametrize(
    "odd",
    [
        "AID://example.com/api@1.0.0",
        "aid://Example.COM/api@1.0.0",
        " aid://example.com/api@1.0.0",
        "aid://example.com/api@1.0.0\u00a0",
        "aid:\uff0f\uff0fexample.com/api@1.0.0",
        "aid://example.com/\uff41pi@1.0.0",
        "aid://example\u3002com/api@1.0.0".replace("\u3002", "\uff0e"),
        "aid://example.com/a\u200bpi@1.0.0",
        "aid://example.com/api@1.0.0\x07",
    ],
)
def test_what_only_looks_like_an_id_is_refused_with_the_one_it_looks_like(odd: str) -> None:
    assert canonical(odd) == PLAIN
    with pytest.raises(InvalidInput, match="agentId: is not in canonical form") as refused:
        check_canonical(odd, "agentId")
    assert refused.value.data == {
        "reason": "agent_id_not_canonical", "path": "agentId", "canonical": PLAIN,
    }  # fmt: skip


@pytest.mark.parametrize(
    "plain", [PLAIN, "mobile", "Mobile", "aid://example.com/API", "aid://bücher.example/ä", "東京"]
)
def test_ids_that_differ_honestly_stay_as_they_are(plain: str) -> None:
    check_canonical(plain, "agentId")
    assert look_alike(plain, [plain, "aid://example.com/other@1.0.0", "other"]) is None


def test_one_that_looks_like_a_known_agent_is_found() -> None:
    """Also where the known id is not canonical; another version is no other agent."""
    assert look_alike(PLAIN, ["AID://Example.com/api@9.0.0"]) == "AID://Example.com/api@9.0.0"
    assert look_alike(PLAIN, ["aid://example.com/api@2.0.0"]) is None


@given(st.text())
def test_the_canonical_form_is_its_own(agent_id: str) -> None:
    assert canonical(canonical(agent_id)) == canonical(agent_id)
