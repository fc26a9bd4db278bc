"""What nodes say to each other about files (design §7)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.file import FILE_MAX
from schemas.file_mesh import (
    PIECE_MAX,
    FileContentParams,
    FileContentResult,
    FileRequestSyncParams,
    FileSyncParams,
)

SIGNATURE = {"node": "aid://example.com/alpha@1.0.0", "value": "v"}
FILE: dict[str, Any] = {
    "file_id": "f",
    "name": "../logo.png",
    "content_type": "image/png",
    "size": FILE_MAX,
    "sha256": "0" * 64,
    "purpose": None,
    "related_contracts": ["c"],
    "from_repo": "r",
    "from_agent": "a",
    "fulfils": None,
    "stamp": 1,
}
REQUEST: dict[str, Any] = {
    "request_id": "r",
    "requested_by": "repo",
    "from_agent": "a",
    "description": "The logo",
    "suggested_format": None,
    "stamp": 1,
}
ASKED = {"source_agent": "a", "projectId": "p", "fileId": "f", "sha256": "0" * 64}


def params(**more: Any) -> dict[str, Any]:
    return {"source_agent": "a", "projectId": "p", "signature": SIGNATURE, **more}


def test_a_file_and_a_request_come_as_they_were_signed() -> None:
    assert FileSyncParams.model_validate(params(file=FILE)).file.model_dump() == FILE
    taken = FileRequestSyncParams.model_validate(params(request=REQUEST))
    assert taken.request.model_dump() == REQUEST


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": FILE_MAX + 1},
        {"size": -1},
        {"sha256": "0" * 63},
        {"sha256": "X" * 64},
        {"stamp": -1},
        {"stamp": 10**18},
        {"name": ""},
        {"name": "x" * 201},
        {"content_type": "x" * 201},
        {"purpose": "x" * 20_001},
        {"related_contracts": ["c"] * 1_001},
        {"from_agent": ""},
        {"content": "YQ=="},
    ],
)
def test_a_file_is_bounded(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FileSyncParams.model_validate(params(file=FILE | wrong))


@pytest.mark.parametrize("wrong", [{"description": "x" * 20_001}, {"stamp": 10**18}, {"more": 1}])
def test_a_request_is_bounded(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FileRequestSyncParams.model_validate(params(request=REQUEST | wrong))


def test_a_piece_is_bounded() -> None:
    assert FileContentParams.model_validate(ASKED).offset == 0
    for wrong in ({"offset": -1}, {"offset": FILE_MAX + 1}, {"sha256": "x"}):
        with pytest.raises(ValidationError):
            FileContentParams.model_validate(ASKED | wrong)
    FileContentResult(content="A" * (PIECE_MAX * 4 // 3 + 3))
    with pytest.raises(ValidationError):
        FileContentResult(content="A" * (PIECE_MAX * 4 // 3 + 9))
