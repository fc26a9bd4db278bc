"""The content of a file as it is here: what is damaged is given to nobody (design §7)."""

import hashlib

import structlog

from server.domain.errors import Damaged
from server.methods.base import Context, Session
from server.store import alarms, files
from server.store.files import File, FileContent

log = structlog.get_logger()


def content(ctx: Context, project_id: str, file: File) -> FileContent | None:
    """The bytes of a file, checked; None when they are not here. Raises Damaged.

    Reads and hashes up to 10 MB: for a thread.
    """
    found = files.content(ctx.db, project_id, file)
    if found is None or hashlib.sha256(found.data).hexdigest() == file.sha256:
        return found
    raise Damaged(
        f"The content of file {file.file_id} that this node stores is not what its SHA-256 says: "
        "it is not given to anybody. Restore it from a backup, or have the file shared anew",
        kind="file_content",
        fileId=file.file_id,
        node=file.holder(ctx.node.agent_id),
    )


async def note(session: Session, project_id: str, file: File) -> None:
    """A damaged copy is let go of; for what this node holds for good, an alarm is raised."""

    def write(ctx: Context) -> bool:
        found = files.content(ctx.db, project_id, file)
        if found is not None and found.used_at is not None:
            files.drop_content(ctx.db, project_id, file)
            return True
        return raise_alarm(ctx, project_id, file)

    if await session.write(write):
        log.error("file_damaged", project=project_id, file=file.file_id)


def raise_alarm(ctx: Context, project_id: str, file: File) -> bool:
    """Whether it is news that this node's content of a file is damaged."""
    detail = (
        f"The content of file {file.file_id} ({file.size} bytes) in project {project_id} is not "
        "what its SHA-256 says: the disk or the file was damaged. It is given to nobody. Restore "
        "the database from a backup, or have the file shared anew; a copy of a peer's mends it "
        "when somebody asks for the file"
    )
    about = files.alarm_of(project_id, file.file_id)
    return alarms.begin(ctx.db, alarms.Alarm("content_corrupt", about, detail, ctx.now))
