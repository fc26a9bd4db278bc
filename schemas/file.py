"""Files that agents hand to each other (design §5, what deployed clients call)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas.base import Identifier, Params, Result, Strings, Text, Timestamp

FILE_MAX = 10 * 1024 * 1024


class SharedFile(Params):
    """A file inline. `content` is base64 of at most 10 MB; `name` is a label, never a path."""

    name: Identifier
    content: str
    content_type: Annotated[str, StringConstraints(max_length=200)] | None = None
    """A media type; application/octet-stream when it is absent."""


class ShareFileParams(Params):
    project_id: Identifier
    file: SharedFile
    purpose: Text | None = None
    related_contracts: Strings | None = None


class ShareFileResult(Result):
    status: Literal["received"]
    file_id: Identifier
    size: int
    sha256: str


class RequestFileParams(Params):
    project_id: Identifier
    description: Text
    suggested_format: Identifier | None = None


class RequestFileResult(Result):
    status: Literal["request_received"]
    request_id: Identifier


class ListFileRequestsParams(Params):
    project_id: Identifier


class FileRequest(Result):
    request_id: Identifier
    project_id: Identifier
    requested_by: Identifier
    description: Text
    suggested_format: Identifier | None = None
    timestamp: Timestamp


class ListFileRequestsResult(Result):
    requests: list[FileRequest]


class FulfillFileRequestParams(Params):
    request_id: Identifier
    project_id: Identifier | None = None
    file: SharedFile


class FulfillFileRequestResult(Result):
    status: Literal["fulfilled"]
    request_id: Identifier
    file_id: Identifier
    size: int
    sha256: str


class ListFilesParams(Params):
    project_id: Identifier
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100
    cursor: Identifier | None = None


class FileSummary(Result):
    file_id: Identifier
    name: Identifier
    content_type: str
    size: int
    sha256: str
    purpose: Text | None = None
    related_contracts: Strings
    from_repo: Identifier
    from_agent: Identifier
    timestamp: Timestamp


class ListFilesResult(Result):
    files: list[FileSummary]
    next_cursor: Identifier | None = None


class GetFileParams(Params):
    project_id: Identifier
    file_id: Identifier


class GetFileResult(FileSummary):
    content: str
