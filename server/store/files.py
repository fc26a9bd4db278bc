"""Files that agents share, their contents, and requests for them (design §7).

Every node knows the descriptions of files and the requests. Contents are stored separately:
permanently on the node that signed the file, and as copies on other nodes while there is room.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from schemas.base import iso, present
from schemas.file import FileFact, FileRequestFact
from server.domain.agents import identity
from server.domain.authorship import signer_of
from server.store import alarms
from server.store.connection import Connection
from server.store.sql import SQL


class File(NamedTuple):
    """The description of a file. `name` is a label and never becomes a path (design §6).

    `related_contracts` is JSON; `signature` is that of the node that holds the content
    (schemas.mesh.Signature, JSON), None when it is this one.
    """

    file_id: str
    name: str
    content_type: str
    size: int
    sha256: str
    purpose: str | None
    related_contracts: str
    from_repo: str
    from_agent: str
    fulfils: str | None
    stamp: int
    signature: str | None = None

    @classmethod
    def of(cls, fact: FileFact, signature: str | None) -> "File":
        fields = fact.model_dump(exclude={"related_contracts"})
        related = orjson.dumps(fact.related_contracts).decode()
        return cls(**fields, related_contracts=related, signature=signature)

    def fact(self) -> FileFact:
        """The members that are signed."""
        fields = self._asdict()
        del fields["signature"]
        return FileFact.model_construct(
            **fields | {"related_contracts": orjson.loads(self.related_contracts)}
        )

    def holder(self, own: str) -> str:
        """The node that holds the content, without its version; `own` is this node."""
        return identity(signer_of(self.signature, own))


class FileRequestRow(NamedTuple):
    """A request for a file. `signature` is that of the node that vouches for it; None for this
    node."""

    request_id: str
    requested_by: str
    from_agent: str
    description: str
    suggested_format: str | None
    stamp: int
    signature: str | None = None

    @classmethod
    def of(cls, fact: FileRequestFact, signature: str | None) -> "FileRequestRow":
        return cls(**fact.model_dump(), signature=signature)

    def fact(self) -> FileRequestFact:
        """The members that are signed."""
        fields = self._asdict()
        del fields["signature"]
        return FileRequestFact.model_construct(**fields)


class FileContent(NamedTuple):
    """The bytes of a file. `used_at` is when a copy was last requested, as a stamp; None for
    content that this node holds permanently."""

    data: bytes
    used_at: int | None


# --- descriptions -----------------------------------------------------------------------


def put(db: Connection, project_id: str, file: File) -> None:
    SQL.put_file(db, project_id=project_id, **file._asdict())


def find(db: Connection, project_id: str, file_id: str) -> File | None:
    row = SQL.file_of(db, project_id=project_id, file_id=file_id)
    return File(*row) if row else None


def after(db: Connection, project_id: str, stamp: int, file_id: str, limit: int) -> list[File]:
    """Files in the order in which they were shared, after the given stamp and id."""
    rows = SQL.files_after(db, project_id=project_id, stamp=stamp, file_id=file_id, limit=limit)
    return [File(*row) for row in rows]


def summary(file: File, own: str) -> dict[str, Any]:
    """The FileSummary object; `own` is this node."""
    shown = {
        "fileId": file.file_id,
        "name": file.name,
        "contentType": file.content_type,
        "size": file.size,
        "sha256": file.sha256,
        "purpose": file.purpose,
        "relatedContracts": orjson.Fragment(file.related_contracts),
        "fromRepo": file.from_repo,
        "fromAgent": file.from_agent,
        "fulfils": file.fulfils,
        "holder": file.holder(own),
        "timestamp": iso(file.stamp),
    }
    return present(shown)


def restamp(db: Connection, project_id: str, entity_id: str, moved: Callable[[int], int]) -> None:
    """Move the stamp of this node's own file or request, which no other node has received yet."""
    file, asked = find(db, project_id, entity_id), request(db, project_id, entity_id)
    if file is not None and file.signature is None:
        put(db, project_id, file._replace(stamp=moved(file.stamp)))
    if asked is not None and asked.signature is None:
        put_request(db, project_id, asked._replace(stamp=moved(asked.stamp)))


# --- contents -----------------------------------------------------------------------------


def content(db: Connection, project_id: str, file: File) -> FileContent | None:
    """The content of a file; None when it is not here."""
    row = SQL.file_content(db, project_id=project_id, file_id=file.file_id, sha256=file.sha256)
    return FileContent(*row) if row else None


def alarm_of(project_id: str, file_id: str) -> str:
    """The `about` of an alarm for a file's content."""
    return f"file content {project_id}/{file_id}"


def drop_content(db: Connection, project_id: str, file: File) -> None:
    SQL.drop_file_content(db, project_id=project_id, file_id=file.file_id, sha256=file.sha256)


def put_content(db: Connection, project_id: str, file: File, kept: FileContent) -> None:
    """Store checked content, which ends an alarm about it."""
    alarms.end(db, "content_corrupt", alarm_of(project_id, file.file_id))
    SQL.put_file_content(
        db,
        project_id=project_id,
        file_id=file.file_id,
        sha256=file.sha256,
        size=len(kept.data),
        used_at=kept.used_at,
        content=kept.data,
    )


def touch(db: Connection, project_id: str, file: File, used_at: int) -> None:
    """Record the last request for a copy; content that is held permanently is left as it is."""
    SQL.touch_file_content(
        db, used_at=used_at, project_id=project_id, file_id=file.file_id, sha256=file.sha256
    )


def copied_bytes(db: Connection) -> int:
    """The bytes of copies of other nodes' files."""
    return int(SQL.copied_file_bytes(db))


def make_room(db: Connection, limit: int) -> None:
    """Drop the least recently used copies until at most `limit` bytes of copies are left."""
    over = copied_bytes(db) - limit
    for project_id, file_id, sha256, size in list(SQL.copies_by_use(db)) if over > 0 else []:
        if over <= 0:
            break
        SQL.drop_file_content(db, project_id=project_id, file_id=file_id, sha256=sha256)
        over -= size


# --- requests -----------------------------------------------------------------------------------


def put_request(db: Connection, project_id: str, asked: FileRequestRow) -> None:
    SQL.put_file_request(db, project_id=project_id, **asked._asdict())


def request(db: Connection, project_id: str, request_id: str) -> FileRequestRow | None:
    row = SQL.file_request(db, project_id=project_id, request_id=request_id)
    return FileRequestRow(*row) if row else None


def project_of_request(db: Connection, request_id: str) -> str | None:
    """The project of a request, by the request's id alone; None when it is unknown."""
    return SQL.project_of_file_request(db, request_id=request_id)  # type: ignore[no-any-return]


def fulfilled_by(db: Connection, project_id: str, request_id: str) -> str | None:
    """The id of the first file that fulfils a request."""
    return SQL.fulfilling_file(  # type: ignore[no-any-return]
        db, project_id=project_id, request_id=request_id
    )


def open_requests(
    db: Connection, project_id: str, stamp: int, request_id: str, limit: int
) -> list[FileRequestRow]:
    """Open requests in the order in which they were made, after the given stamp and id."""
    rows = SQL.open_file_requests(
        db, project_id=project_id, stamp=stamp, request_id=request_id, limit=limit
    )
    return [FileRequestRow(*row) for row in rows]
