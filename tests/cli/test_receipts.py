"""What becomes of receipts: what people are told. `test_verify.py` and `test_probe_receipt.py` have
them recorded by a node."""

import json
from pathlib import Path

import pytest

from cli.receipts import kept_text, tell, write_copy
from proof.receipts import receipt_of_probe
from tests.proof.test_receipts import KEYS, PROBE
from tests.proof.test_subject import SUBJECT, TREE

RECEIPT = receipt_of_probe(SUBJECT, TREE, KEYS, PROBE)


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ({"status": "refused", "problem": "It is dirty."}, "no receipt is recorded. It is dirty."),
        (
            {"status": "kept", "problem": "no node", "file": "/a b/r.json"},
            "no node. The receipt is kept in /a b/r.json: send it with "
            "`cacp verify --key-file FILE --send '/a b/r.json'`",
        ),
        (
            {
                "status": "recorded",
                "proves": True,
                "contractStatus": "implemented",
                "unproven": [{"repoId": "r2", "side": "consumer", "name": "web"}],
            },
            "passed at aaaaaaaaaaaa: the receipt is recorded, and proves the provider's side. The "
            "contract is implemented\ncacp: not proven yet: web as consumer",
        ),
    ],
)
def test_what_became_of_it_is_told(
    recorded: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(RECEIPT, recorded)
    assert capsys.readouterr() == ("", f"cacp: {words}\n")


def test_a_copy_that_can_not_be_written_ends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_copy(tmp_path, "p", RECEIPT)
    assert "Is a directory" in capsys.readouterr().err
    write_copy(tmp_path / "r.json", "p", RECEIPT)
    assert (tmp_path / "r.json").read_text() == kept_text("p", RECEIPT)
    assert json.loads(kept_text("p", RECEIPT)) == {"projectId": "p", "receipt": RECEIPT.wire()}
