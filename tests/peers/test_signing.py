"""Node keys (design §6, Authorship)."""

from hypothesis import given
from hypothesis import strategies as st

from peers.signing import SigningKey, verify

SEEDS = st.binary(min_size=32, max_size=32)


@given(SEEDS, st.binary(max_size=100))
def test_a_signature_is_of_its_key_and_message_only(seed: bytes, message: bytes) -> None:
    key, other = SigningKey(seed), SigningKey(bytes(31) + b"x")
    signature = key.sign(message)
    assert verify(key.public, message, signature)
    assert not verify(key.public, message + b"!", signature)
    assert not verify(other.public, message, signature)
    assert key.sign(message) == signature, "it can be made again and needs not be kept"


@given(st.text(max_size=50), st.text(max_size=50))
def test_what_is_no_key_or_signature_holds_nothing(public: str, signature: str) -> None:
    assert not verify(public, b"message", signature)
    assert not verify(SigningKey(bytes(32)).public, b"message", signature)
