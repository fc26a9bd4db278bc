"""Files that agents hand to each other."""

from typing import Any

from schemas.file import FulfillFileRequestParams, RequestFileParams, ShareFileParams
from tests.schemas.refusals import refusal, without

FILE: dict[str, Any] = {"name": "openapi.yaml", "content": "b3BlbmFwaQ=="}
SHARE: dict[str, Any] = {"projectId": "p", "file": FILE, "purpose": "The API as it is now"}


def test_a_file_goes_inline_and_may_say_what_it_is() -> None:
    assert ShareFileParams.model_validate(SHARE).file.content_type is None
    typed = SHARE | {"file": FILE | {"contentType": "text/yaml"}, "relatedContracts": ["c1"]}
    assert ShareFileParams.model_validate(typed).file.content_type == "text/yaml"


def test_a_request_says_what_is_wanted() -> None:
    sent = {"projectId": "p", "description": "The API's schema", "suggestedFormat": "yaml"}
    assert RequestFileParams.model_validate(sent).suggested_format == "yaml"
    fulfilled = FulfillFileRequestParams.model_validate({"requestId": "q", "file": FILE})
    assert fulfilled.project_id is None


def test_a_file_is_refused_where_it_is_wrong() -> None:
    broken = SHARE | {"file": without(FILE, "content")}
    assert refusal(ShareFileParams, broken) == ("file.content", "Field required")
    long = SHARE | {"file": FILE | {"name": "x" * 201}}
    assert refusal(ShareFileParams, long)[0] == "file.name"
    extra = SHARE | {"file": FILE | {"path": "/srv"}}
    assert refusal(ShareFileParams, extra) == ("file.path", "Extra inputs are not permitted")
