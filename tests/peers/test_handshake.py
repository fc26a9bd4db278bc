"""Proofs and keys of a handshake (design §6)."""

from hypothesis import given
from hypothesis import strategies as st

from peers import handshake
from schemas.mesh import Introduction

TOKEN = "a mesh token that nobody guesses"
NONCES = st.binary(min_size=32, max_size=32).map(bytes.hex)


def introduction(name: str, **more: str) -> Introduction:
    given = {
        "agent_id": f"aid://example.com/{name}@1.0.0",
        "endpoint": f"http://{name}.example",
        "repo_name": name,
        "public_key": name,
        "nonce": "0" * 64,
    }
    return Introduction.model_validate(given | more, by_name=True)


ALPHA, BETA = introduction("alpha"), introduction("beta")
SAID = handshake.transcript(ALPHA, BETA)


def test_a_proof_holds_for_its_secret_its_role_and_what_was_said_only() -> None:
    proof = handshake.proof(TOKEN, "caller", SAID)
    assert handshake.holds(TOKEN, "caller", SAID, proof)
    assert not handshake.holds(TOKEN + "!", "caller", SAID, proof)
    assert not handshake.holds(TOKEN, "answerer", SAID, proof), "it can't be sent back"


@given(st.sampled_from(["agent_id", "endpoint", "repo_name", "public_key", "nonce"]))
def test_everything_that_both_said_is_part_of_it(name: str) -> None:
    """An answer from a false endpoint proves nothing elsewhere."""
    other = BETA.model_copy(update={name: "another"})
    said = handshake.transcript(ALPHA, other)
    assert not handshake.holds(TOKEN, "caller", said, handshake.proof(TOKEN, "caller", SAID))
    assert handshake.pair_keys(TOKEN, said) != handshake.pair_keys(TOKEN, SAID)


@given(NONCES, NONCES)
def test_each_handshake_gives_keys_of_its_own(one: str, other: str) -> None:
    def keys_with(nonce: str) -> handshake.PairKeys:
        caller = ALPHA.model_copy(update={"nonce": nonce})
        return handshake.pair_keys(TOKEN, handshake.transcript(caller, BETA))

    assert (keys_with(one) == keys_with(other)) == (one == other)
    assert keys_with(one).caller != keys_with(one).answerer


def test_nothing_that_is_sent_holds_the_secret() -> None:
    sent = [
        handshake.token_tag(TOKEN, ALPHA.nonce),
        handshake.proof(TOKEN, "caller", SAID),
        SAID.decode(),
    ]
    assert not any(TOKEN in text or TOKEN.encode().hex() in text for text in sent)


@given(NONCES, NONCES)
def test_a_tag_tells_tokens_apart_and_no_two_calls_alike(one: str, other: str) -> None:
    assert handshake.token_tag(TOKEN, one) != handshake.token_tag(TOKEN + "!", one)
    assert (handshake.token_tag(TOKEN, one) == handshake.token_tag(TOKEN, other)) == (one == other)
