"""Node keys (design §7)."""

import tracemalloc
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peers import signing
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


@given(st.lists(st.binary(max_size=20), max_size=40), st.binary(min_size=1, max_size=9))
def test_many_messages_are_signed_as_one_and_each_holds_alone(
    messages: list[bytes], more: bytes
) -> None:
    key, other = SigningKey(bytes(32)), SigningKey(bytes(31) + b"x")
    signed = key.sign_all(messages)
    assert len(signed) == len(messages)
    assert len({one.value for one in signed}) <= 1
    for message, one in zip(messages, signed, strict=True):
        assert verify(key.public, message, one.value, one.path)
        assert (
            not verify(key.public, message + more, one.value, one.path)
            or message + more in messages
        )
        assert not verify(other.public, message, one.value, one.path)


def test_what_is_no_path_leads_nowhere() -> None:
    key = SigningKey(bytes(32))
    one = key.sign_all([b"a", b"b", b"c"])[0]
    for path in ("", "x", "AAAA", one.path[:44], one.path + one.path, "é"):
        assert not verify(key.public, b"a", one.value, path)


def test_a_node_of_the_tree_is_no_message() -> None:
    """RFC 6962, 2.1: leaves and nodes are hashed apart."""
    key = SigningKey(bytes(32))
    signed = key.sign_all([b"a", b"b"])
    leaves = sorted(sha256(b"\x00" + message).digest() for message in (b"a", b"b"))
    assert {urlsafe_b64decode(one.path) for one in signed} == set(leaves)
    assert not verify(key.public, b"".join(leaves), signed[0].value, "")


@given(st.integers(min_value=0, max_value=39), st.integers(min_value=0, max_value=200))
def test_a_known_tree_changes_no_answer(of: int, at: int) -> None:
    """A message whose path leads to a known node, but not on to the root, would be refused by the
    next node to which it is passed on."""
    key = SigningKey(bytes(32))
    messages = [bytes([number]) for number in range(40)]
    signed = key.sign_all(messages)
    for message, one in zip(messages, signed, strict=True):
        assert verify(key.public, message, one.value, one.path)
    path = bytearray(urlsafe_b64decode(signed[of].path))
    path[at % len(path)] ^= 1
    changed = urlsafe_b64encode(path).decode()
    shortened = urlsafe_b64encode(path[: -signing.HASH]).decode()
    for other in (changed, shortened, signed[of].path * 2):
        assert not verify(key.public, messages[of], signed[of].value, other)
    assert not verify(key.public, b"another", signed[of].value, signed[of].path)


def test_a_tree_is_known_within_limits() -> None:
    key = SigningKey(bytes(32))
    for batch in range(signing.BATCHES_MAX + 2):
        messages = [b"%d %d" % (batch, number) for number in range(3 * signing.NODES_MAX)]
        for message, one in zip(messages[:1], key.sign_all(messages)[:1], strict=True):
            assert verify(key.public, message, one.value, one.path)
    for message, one in zip(messages, key.sign_all(messages), strict=True):
        assert verify(key.public, message, one.value, one.path)
    assert len(signing._trees) == signing.BATCHES_MAX
    assert max(map(len, signing._trees.values())) < signing.NODES_MAX + 32


def test_what_was_verified_is_not_kept_itself() -> None:
    """A message may be megabytes, and thousands of answers are remembered."""
    key = SigningKey(bytes(32))
    tracemalloc.start()
    try:
        for number in range(20):
            message = bytes([number]) * 1_000_000
            assert verify(key.public, message, key.sign(message))
        del message
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2_000_000


def test_answers_are_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "ANSWERS_MAX", 3)
    monkeypatch.setattr(signing, "_answers", {})
    key = SigningKey(bytes(32))
    for number in range(5):
        assert not verify(key.public, b"message", str(number))
    assert [signature for _, signature, _ in signing._answers] == ["2", "3", "4"]
