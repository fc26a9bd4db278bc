"""Node keys: Ed25519 (RFC 8032). Keys and signatures are URL-safe base64 text.

The library is imported on first use: a node without peers does without it.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class SigningKey:
    """A node's private key. `seed` are the 32 bytes that it is made of."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._loaded: Ed25519PrivateKey | None = None

    @property
    def public(self) -> str:
        """The public key as text."""
        return _text(self._key().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> str:
        return _text(self._key().sign(message))

    def _key(self) -> "Ed25519PrivateKey":
        if self._loaded is None:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            self._loaded = Ed25519PrivateKey.from_private_bytes(self._seed)
        return self._loaded


@lru_cache(maxsize=4096)
def verify(public: str, message: bytes, signature: str) -> bool:
    """Whether `signature` is that of `message` by the key `public`. False also for what is none.

    The last answers are kept: a contract comes again with each step, most of its facts unchanged.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(public))
        key.verify(urlsafe_b64decode(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode()
