"""Files that agents hand to each other, and requests for them."""

import sqlite3
from typing import Any, NamedTuple

import orjson

from schemas.base import iso
from server.store.sql import SQL


class File(NamedTuple):
    """A stored file. `name` is a label and never becomes a path (design §7)."""

    file_id: str
    name: str
    content_type: str
    size: int
    sha256: str
    purpose: str | None
    related_contracts: str
    from_repo: str
    from_agent: str
    stamp: int


class Request(NamedTuple):
    project_id: str
    description: str
    fulfilled_by: str | None


def insert(db: sqlite3.Connection, project_id: str, file: File, content: bytes) -> None:
    SQL.insert_file(db, project_id=project_id, content=content, **file._asdict())


def after(db: sqlite3.Connection, project_id: str, file_id: str, limit: int) -> list[File]:
    rows = SQL.files_after(db, project_id=project_id, after=file_id, limit=limit)
    return [File(*row) for row in rows]


def whole(db: sqlite3.Connection, project_id: str, file_id: str) -> tuple[File, bytes] | None:
    row = SQL.file_whole(db, project_id=project_id, file_id=file_id)
    return (File(*row[:-1]), row[-1]) if row else None


def insert_request(
    db: sqlite3.Connection,
    project_id: str,
    request_id: str,
    requested_by: str,
    description: str,
    suggested_format: str | None,
    stamp: int,
) -> None:
    SQL.insert_file_request(
        db,
        project_id=project_id,
        request_id=request_id,
        requested_by=requested_by,
        description=description,
        suggested_format=suggested_format,
        stamp=stamp,
    )


def open_requests(db: sqlite3.Connection, project_id: str) -> list[dict[str, Any]]:
    return [
        {
            "requestId": request_id,
            "projectId": project_id,
            "requestedBy": requested_by,
            "description": description,
            "suggestedFormat": suggested_format,
            "timestamp": iso(stamp),
        }
        for request_id, project_id, requested_by, description, suggested_format, stamp in (
            SQL.open_file_requests(db, project_id=project_id)
        )
    ]


def request(db: sqlite3.Connection, request_id: str) -> Request | None:
    row = SQL.file_request(db, request_id=request_id)
    return Request(*row) if row else None


def fulfil(db: sqlite3.Connection, request_id: str, file_id: str) -> None:
    SQL.fulfil_file_request(db, request_id=request_id, file_id=file_id)


def summary(file: File) -> dict[str, Any]:
    """The FileSummary object."""
    return {
        "fileId": file.file_id,
        "name": file.name,
        "contentType": file.content_type,
        "size": file.size,
        "sha256": file.sha256,
        "purpose": file.purpose,
        "relatedContracts": orjson.Fragment(file.related_contracts),
        "fromRepo": file.from_repo,
        "fromAgent": file.from_agent,
        "timestamp": iso(file.stamp),
    }
