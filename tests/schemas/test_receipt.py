"""The parts of a receipt."""

from schemas.receipt import ProofReceipt, ProofRun
from tests.peers.test_receipts import KEY, RUN


def test_a_body_leaves_out_what_says_nothing_and_what_is_not_signed() -> None:
    assert "seed" not in RUN.body()
    assert RUN.model_copy(update={"seed": 0}).body()["seed"] == 0
    receipt = ProofReceipt(**RUN.model_dump(), public_key=KEY.public, signature="A" * 86 + "==")
    assert receipt.body() == RUN.body()
    assert receipt.wire().keys() - receipt.body().keys() == {"publicKey", "signature"}


def test_a_body_is_a_run_again() -> None:
    assert ProofRun.model_validate(RUN.body()) == RUN
