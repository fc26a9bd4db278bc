"""What nodes say to each other about mail (design §7)."""

import pytest
from pydantic import ValidationError

from schemas.acp_mesh import AGENTS_MAX, BATCH_MAX, Directory, MailParams

SIGNATURE = {"node": "n", "value": "v"}


def test_a_directory_and_a_batch_are_bounded() -> None:
    assert Directory(agents=["a"] * AGENTS_MAX, stamp=1, epoch="e").stamp == 1
    with pytest.raises(ValidationError):
        Directory(agents=["a"] * (AGENTS_MAX + 1), stamp=1, epoch="e")
    carried = {"text": "{}", "signature": SIGNATURE}
    given = {"source_agent": "a", "messages": [carried] * BATCH_MAX}
    assert len(MailParams.model_validate(given).messages) == BATCH_MAX
    with pytest.raises(ValidationError):
        MailParams.model_validate(given | {"messages": [carried] * (BATCH_MAX + 1)})


def test_a_receipt_has_a_status_of_the_specification() -> None:
    reached = [{"recipient": "a", "status": "seen"}]
    receipts = [{"message_id": "m", "reached": reached}]
    with pytest.raises(ValidationError):
        MailParams.model_validate({"source_agent": "a", "receipts": receipts})
