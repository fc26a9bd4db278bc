"""Files that agents exchange (design §5, the calls of deployed clients)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas.base import (
    Cursor,
    Identifier,
    Params,
    Result,
    Stamp,
    Strings,
    Text,
    Timestamp,
    WireObject,
)

FILE_MAX = 10 * 1024 * 1024

MediaType = Annotated[str, StringConstraints(max_length=200)]
SHA256 = "^[0-9a-f]{64}$"
Sha256 = Annotated[str, StringConstraints(pattern=SHA256)]


class FileFact(WireObject):
    """The description of a file that its node signs: immutable, without the content (design §7)."""

    file_id: Identifier
    name: Identifier
    content_type: MediaType
    size: Annotated[int, Field(ge=0, le=FILE_MAX)]
    sha256: Sha256
    purpose: Text | None = None
    related_contracts: Strings
    from_repo: Identifier
    from_agent: Identifier
    fulfils: Identifier | None = None
    """The request that this file fulfils."""
    stamp: Stamp


class FileRequestFact(WireObject):
    """An agent's request for a file, signed by its node: immutable. A file that refers to it
    fulfils it."""

    request_id: Identifier
    requested_by: Identifier
    from_agent: Identifier
    description: Text
    suggested_format: Identifier | None = None
    stamp: Stamp


class SharedFile(Params):
    """A file inline. `content` is base64 of at most 10 MB; `name` is a label, never a path."""

    name: Identifier
    content: str
    content_type: MediaType | None = None
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
    limit: Annotated[int, Field(ge=1, le=1_000)] = 1_000
    cursor: Cursor | None = None


class FileRequest(Result):
    request_id: Identifier
    project_id: Identifier
    requested_by: Identifier
    description: Text
    suggested_format: Identifier | None = None
    timestamp: Timestamp


class ListFileRequestsResult(Result):
    requests: list[FileRequest]
    next_cursor: Cursor | None = None


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
    cursor: Cursor | None = None


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
    fulfils: Identifier | None = None
    """The request that this file fulfils."""
    holder: Identifier
    """The node that has the content, without its version: others fetch it from there."""
    timestamp: Timestamp


class ListFilesResult(Result):
    files: list[FileSummary]
    next_cursor: Cursor | None = None


class GetFileParams(Params):
    project_id: Identifier
    file_id: Identifier


class GetFileResult(FileSummary):
    content: str
