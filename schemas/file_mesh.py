"""What mesh nodes say to each other about files (design §7)."""

from typing import Annotated

from pydantic import Field, StringConstraints

from schemas.acp_mesh import SourceAgent
from schemas.base import Identifier, Params, Result
from schemas.file import FILE_MAX, FileFact, FileRequestFact, Sha256
from schemas.mesh import Signature
from schemas.sync import SyncParams

PIECE_MAX = 1024 * 1024
"""Bytes of a file in one answer."""


class FileSyncParams(SyncParams):
    project_id: Identifier
    file: FileFact
    signature: Signature


class FileRequestSyncParams(SyncParams):
    project_id: Identifier
    request: FileRequestFact
    signature: Signature


class FileContentParams(Params):
    """The bytes of a file from `offset` on, as many as one answer takes."""

    source_agent: SourceAgent
    project_id: Identifier
    file_id: Identifier
    sha256: Sha256
    offset: Annotated[int, Field(ge=0, le=FILE_MAX)] = 0
    relay: bool = False
    """Fetch the content from its holder first if it is not here: the caller can't reach it."""


class FileContentResult(Result):
    content: Annotated[str, StringConstraints(max_length=PIECE_MAX * 4 // 3 + 4)]
    """Base64; empty at the end of the file."""
