"""Receipts are signed over all that they say."""

from typing import Any

import pytest
from pydantic import ValidationError

from peers.receipts import is_signed, signed
from peers.signing import SigningKey
from schemas.receipt import ProofReceipt, ProofRun

KEY = SigningKey(bytes(range(32)))
OTHER = SigningKey(bytes(32))
RUN = ProofRun(
    contract_id="c",
    version=2,
    digest="d" * 64,
    round=1,
    repo="api",
    side="provider",
    commit="a" * 40,
    tree="b" * 40,
    dirty=False,
    tool="verify",
    command="make test",
    exit_code=0,
    outcome="passed",
    output_digest="e" * 64,
    started_at="2026-03-01T10:00:00.000000+00:00",
    duration=1_250,
    runner="aid://example.com/ci@1.0.0",
)


CHANGES: dict[str, Any] = {
    "contractId": "other",
    "version": 3,
    "digest": "f" * 64,
    "round": 2,
    "repo": "web",
    "side": "consumer",
    "commit": "c" * 40,
    "tree": "c" * 40,
    "dirty": True,
    "base": "c" * 40,
    "tool": "probe",
    "target": "mock",
    "seed": 7,
    "cases": 1,
    "command": "true",
    "exitCode": 1,
    "outcome": "regression",
    "outputDigest": "f" * 64,
    "startedAt": "2026-03-02T10:00:00.000000+00:00",
    "duration": 1,
    "runner": "aid://example.com/other@1.0.0",
}


def test_what_a_runner_signs_is_signed() -> None:
    receipt = signed(RUN, KEY)
    assert is_signed(receipt)
    assert receipt.public_key == KEY.public
    assert ProofReceipt.model_validate(receipt.wire()) == receipt
    assert is_signed(ProofReceipt.model_validate_json(receipt.model_dump_json(by_alias=True)))


def test_every_member_may_be_edited_here() -> None:
    aliases = {field.alias for field in ProofRun.model_fields.values()}
    assert set(CHANGES) == aliases


@pytest.mark.parametrize("member", CHANGES)
def test_no_member_can_be_edited_after_signing(member: str) -> None:
    edited = signed(RUN, KEY).wire() | {member: CHANGES[member]}
    assert not is_signed(ProofReceipt.model_validate(edited))


def test_nobody_elses_key_fits() -> None:
    wire = signed(RUN, KEY).wire()
    assert not is_signed(ProofReceipt.model_validate(wire | {"publicKey": OTHER.public}))
    other = {"signature": signed(RUN, OTHER).signature}
    assert not is_signed(ProofReceipt.model_validate(wire | other))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("note", "more than was signed"),
        ("commit", "HEAD"),
        ("dirty", 0),
        ("exitCode", "0"),
        ("exitCode", 2**60),
        ("outcome", "success"),
        ("target", "staging"),
        ("startedAt", "yesterday"),
        ("publicKey", "short"),
    ],
)
def test_a_receipt_has_the_members_that_it_should(member: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        ProofReceipt.model_validate(signed(RUN, KEY).wire() | {member: value})
