"""Signs receipts, and checks their signatures. Pure."""

from typing import Any

import rfc8785

from peers.signing import SigningKey, verify
from schemas.receipt import ProofReceipt, ProofRun


def signed(run: ProofRun, key: SigningKey) -> ProofReceipt:
    """The receipt of a run, signed with a runner's key."""
    body = run.body()
    keyed = {"publicKey": key.public, "signature": key.sign(_text(body))}
    return ProofReceipt.model_validate(body | keyed)


def is_signed(receipt: ProofReceipt) -> bool:
    """Whether the key that a receipt names has signed it as it is."""
    return verify(receipt.public_key, _text(receipt.body()), receipt.signature)


def _text(body: dict[str, Any]) -> bytes:
    return rfc8785.dumps(body)
