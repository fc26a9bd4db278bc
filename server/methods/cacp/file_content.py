"""The content of a file on this node; damaged content is not served (design §7)."""

import hashlib

import structlog

from server.domain.errors import Damaged
from server.methods.base import CallSession, Context
from server.store import alarms, files
from server.store.files import File, FileContent

log = structlog.get_logger()


def content(ctx: Context, project_id: str, file: File) -> FileContent | None:
    """The checked bytes of a file; None when they are not here. Raises Damaged.

    Reads and hashes up to 10 MB: call it in a thread.
    """
    stored = files.content(ctx.db, project_id, file)
    if stored is None or hashlib.sha256(stored.data).hexdigest() == file.sha256:
        return stored
    raise Damaged(
        f"The content of file {file.file_id} on this node does not match its SHA-256, so it is not "
        f"served. Restore it from a backup, or ask {file.from_agent} to share the file again",
        kind="file_content",
        fileId=file.file_id,
        node=file.holder(ctx.node.agent_id),
    )


async def note(session: CallSession, project_id: str, file: File) -> None:
    """Drop a damaged copy; raise an alarm for damaged content that this node itself holds."""

    def write(ctx: Context) -> bool:
        stored = files.content(ctx.db, project_id, file)
        if stored is not None and stored.used_at is not None:
            files.drop_content(ctx.db, project_id, file)
            return True
        return raise_alarm(ctx, project_id, file)

    if await session.write(write):
        log.error("file_damaged", project=project_id, file=file.file_id)


def raise_alarm(ctx: Context, project_id: str, file: File) -> bool:
    """Raise an alarm for damaged content. False when there was one already."""
    detail = (
        f"The content of file {file.file_id} ({file.size} bytes) in project {project_id} does not "
        "match its SHA-256: the disk or the file was damaged. It is not served. Restore the "
        f"database from a backup, or ask {file.from_agent} to share the file again; when a caller "
        "asks for the file, a peer's copy replaces it"
    )
    about = files.alarm_of(project_id, file.file_id)
    return alarms.begin(ctx.db, alarms.Alarm("content_corrupt", about, detail, ctx.now))
