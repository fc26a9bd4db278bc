"""How two nodes that share a secret come to trust each other (design §6). Pure.

    caller                                     answerer
      │  Hello: who I am, which secret            │
      ├──────────────────────────────────────────►│  knows the secret by its id
      │  Welcome: who I am, proof, signature      │
      │◄──────────────────────────────────────────┤
      │  Confirm: proof, signature                │
      ├──────────────────────────────────────────►│
    both derive two keys, one for each direction

The secret is a mesh token or an invite's code. It never travels: the proofs are HMACs over both
introductions, that is over agents, endpoints, public keys and nonces, so that an answer from a
false endpoint proves nothing elsewhere. The signatures show that each holds its node key, which
its agent id is pinned to.
"""

import hashlib
import hmac
from typing import Literal, NamedTuple

from schemas.mesh import Introduction

Role = Literal["caller", "answerer"]

KEY_PREFIX = "cacp_sk_mesh_"


class PairKeys(NamedTuple):
    """The bearer keys of a pair of nodes, one for each direction."""

    caller: str
    answerer: str


def token_tag(token: str, nonce: str) -> str:
    """Tells the answerer which of its tokens is meant, and tells others nothing."""
    return _hmac(token.encode(), f"cacp mesh tag\n{nonce}".encode()).hex()[:32]


def transcript(caller: Introduction, answerer: Introduction) -> bytes:
    """Both introductions as one text, which proofs and signatures cover."""
    return "\n".join(["cacp mesh 1", caller.model_dump_json(), answerer.model_dump_json()]).encode()


def proof(secret: str, role: Role, transcript: bytes) -> str:
    """Proof of the secret by the side of this role: HMAC-SHA256, hex."""
    return _hmac(secret.encode(), b"proof %s\n" % role.encode() + transcript).hex()


def holds(secret: str, role: Role, transcript: bytes, given: str) -> bool:
    """Whether `given` is the proof, in constant time."""
    return hmac.compare_digest(proof(secret, role, transcript), given)


def signed(role: Role, transcript: bytes) -> bytes:
    """What the side of this role signs with its node key."""
    return b"signature %s\n" % role.encode() + transcript


def pair_keys(secret: str, transcript: bytes) -> PairKeys:
    """The keys of the pair: HKDF-SHA256 (RFC 5869) of the secret, with the transcript as salt."""
    extracted = _hmac(hashlib.sha256(transcript).digest(), secret.encode())
    return PairKeys(*(_expanded(extracted, role) for role in ("caller", "answerer")))


def _expanded(key: bytes, role: str) -> str:
    return KEY_PREFIX + _hmac(key, b"bearer of the %s\x01" % role.encode()).hex()


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
