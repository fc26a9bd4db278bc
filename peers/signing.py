"""Node keys: Ed25519 (RFC 8032). Keys, signatures and paths are URL-safe base64 text.

Many messages are signed at the price of one: they become the leaves of a Merkle tree (as in RFC
6962, with the two sides of a node in the order of their bytes), its root is signed, and each
message goes with the hashes on its path to the root. Checking them all costs one signature too.

The library is imported on first use: a node without peers doesn't need it.
"""

from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


HASH = 32
_ROOT = b"cacp batch\n"
ANSWERS_MAX = 4096
"""Signatures whose check, valid or not, is remembered."""
BATCHES_MAX = 16
NODES_MAX = 1024
"""Signed batches of which nodes of the tree are remembered, and how many nodes of one."""


class Signed(NamedTuple):
    """A signature, and the path from the message to the signed root; "" if the message itself was
    signed."""

    value: str
    path: str


class SigningKey:
    """A node's private key, made from a `seed` of 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._loaded: Ed25519PrivateKey | None = None

    @property
    def public(self) -> str:
        """The public key as text."""
        return _text(self._key().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> str:
        return _text(self._key().sign(message))

    def sign_all(self, messages: Sequence[bytes]) -> list[Signed]:
        """A signature for each message, in their order."""
        if not messages:
            return []
        if len(messages) == 1:
            return [Signed(self.sign(messages[0]), "")]
        root, paths = _tree([_leaf(message) for message in messages])
        value = self.sign(_ROOT + root)
        return [Signed(value, _text(path)) for path in paths]

    def _key(self) -> "Ed25519PrivateKey":
        if self._loaded is None:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            self._loaded = Ed25519PrivateKey.from_private_bytes(self._seed)
        return self._loaded


def verify(public: str, message: bytes, signature: str, path: str = "") -> bool:
    """Whether `signature` is that of `message` by the key `public`; False for a malformed one."""
    if path == "":
        return _verified(public, message, signature)
    try:
        steps = b64decode(path, b"-_", validate=True)
    except ValueError:
        return False
    if len(steps) % HASH:
        return False
    known = _trees.get((public, signature), _NO_TREE)
    node = _leaf(message)
    passed: list[tuple[bytes, bytes]] = []
    for at in range(0, len(steps), HASH):
        step = steps[at : at + HASH]
        node = sha256(b"\x01" + (node + step if node < step else step + node)).digest()
        rest = steps[at + HASH :]
        if known.get(node) == rest:
            break
        passed.append((node, rest))
    else:
        if not _verified(public, _ROOT + node, signature):
            return False
    _remember(public, signature, passed)
    return True


def _remember(public: str, signature: str, passed: list[tuple[bytes, bytes]]) -> None:
    """Remember nodes that lead to a signed root by the rest of their path. Most nodes are on the
    paths of many messages. By another rest a node is not known: it would be passed on with it."""
    if not passed:
        return
    with _lock:
        tree = _trees.setdefault((public, signature), {})
        if len(tree) < NODES_MAX:
            tree.update(passed)
        while len(_trees) > BATCHES_MAX:
            del _trees[next(iter(_trees))]


def _leaf(message: bytes) -> bytes:
    return sha256(b"\x00" + message).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + min(left, right) + max(left, right)).digest()


def _tree(leaves: list[bytes]) -> tuple[bytes, list[bytes]]:
    """The root over these leaves, and the path to it from each."""
    paths = [b""] * len(leaves)
    level = leaves
    height = 0
    while len(level) > 1:
        for leaf in range(len(leaves)):
            beside = (leaf >> height) ^ 1
            if beside < len(level):
                paths[leaf] += level[beside]
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [_node(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        height += 1
    return level[0], paths


def _verified(public: str, message: bytes, signature: str) -> bool:
    """Remembers the last results: a batch has one signature, and a contract comes again with each
    step, most of its facts unchanged. A message may be megabytes, so its hash is the key."""
    name = (public, signature, sha256(message).digest())
    with _lock:
        answer = _answers.get(name)
    if answer is None:
        answer = _verify(public, message, signature)
        with _lock:
            _answers[name] = answer
            while len(_answers) > ANSWERS_MAX:
                del _answers[next(iter(_answers))]
    return answer


_lock = Lock()
_answers: dict[tuple[str, str, bytes], bool] = {}
_trees: dict[tuple[str, str], dict[bytes, bytes]] = {}
"""By key and signature of a batch: nodes of its tree, with the path from there to the root."""
_NO_TREE: dict[bytes, bytes] = {}


def _verify(public: str, message: bytes, signature: str) -> bool:
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
