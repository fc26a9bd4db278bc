"""The params and results of methods on receipts."""

import pytest
from pydantic import ValidationError

from peers.receipts import signed
from schemas.receipt_calls import RecordReceiptParams, UnprovenSide
from tests.peers.test_receipts import KEY, RUN


def test_a_receipt_is_given_as_it_was_signed() -> None:
    wire = signed(RUN, KEY).wire()
    params = RecordReceiptParams.model_validate(
        {"projectId": "p", "contractId": "c", "receipt": wire}
    )
    assert params.receipt.wire() == wire
    with pytest.raises(ValidationError):
        RecordReceiptParams.model_validate({"projectId": "p", "contractId": "c"})


def test_a_side_names_its_repo_where_it_is_known() -> None:
    side = UnprovenSide(repo_id="r1", side="consumer")
    assert side.model_dump(by_alias=True, exclude_none=True) == {
        "repoId": "r1",
        "side": "consumer",
    }
