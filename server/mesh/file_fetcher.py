"""Fetches the content of other nodes' files, when a caller asks for it (design §7).

Content comes in pieces, from the node that holds the file or from one that has a copy. It is
checked by its SHA-256 before a caller gets a byte of it, and kept while there is room. Nothing is
written to disk before it is whole, so a killed node leaves nothing to repair.
"""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

import structlog
from pydantic import ValidationError

from peers.errors import CallError, PeerRefused
from schemas.file_mesh import PIECE_MAX, FileContentResult
from schemas.plain import one_line
from server.domain.agents import identity
from server.domain.errors import Damaged, NodeAway, NotFound, Refusal, Unavailable
from server.mesh.mesh_channel import MeshChannel
from server.node import Node
from server.store import files
from server.store.database import Database
from server.store.files import File, FileContent
from server.store.group_commit import Transaction
from server.util.log_once import RateLimitedLog

log = structlog.get_logger()

PATIENCE = 20.0
"""Seconds that a caller waits, less than callers' usual timeouts. The fetch continues, so
a caller that asks again finds it further, or done."""
SECONDS = 300.0
"""For a whole file, from all nodes that may have it."""
AT_ONCE = 2
"""Files that are fetched concurrently for one holder; more wait. So a holder that hangs doesn't
hold up others, and no more files than this are in memory for each."""
SAID_MAX = 300

LACKS_CONTENT = ("no_content", "not_found")
"""Reasons of a holder that no longer has the content."""


class WrongContent(CallError):
    """The content that came doesn't match the file's SHA-256."""


class FileFetcher:
    """Fetches each content once, however many callers ask for it.

    `links` are the channels to the peers, by agent id without version; `is_up` says whether a peer
    answers. `room` is how many bytes of copies are kept.
    """

    def __init__(
        self,
        database: Database,
        node: Node,
        links: Mapping[str, MeshChannel],
        is_up: Callable[[str], bool],
        room: int,
    ) -> None:
        self._database = database
        self._own = identity(node.agent_id)
        self._links = links
        self._is_up = is_up
        self._room = room
        self._running: dict[tuple[str, str, str, bool], asyncio.Task[bytes]] = {}
        self._at_once = WeakValueDictionary[str, asyncio.Semaphore]()
        """By holder, while something is fetched from it: peers may name any number of holders."""
        self._notices = RateLimitedLog()
        self.fetched = 0
        """Contents that came whole and matched."""
        self.failed = 0
        """Contents that no node gave, or that didn't match."""

    async def fetch(self, project_id: str, file: File, *, direct: bool = False) -> bytes:
        """The content of a file that is not here; with `direct`, from its holder alone.

        Raises NodeAway if no node gives it now, NotFound if its holder has lost it, Damaged if the
        holder's copy is damaged.
        """
        key = (project_id, file.file_id, file.sha256, direct)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(project_id, file, direct))
            self._running[key] = task
            task.add_done_callback(partial(self._done, key))
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if not done:
            holder = file.holder(self._own)
            raise NodeAway(
                f"The content of file {file.file_id} is being fetched from {holder}; "
                "retry in a few seconds",
                reason="being_fetched",
                node=holder,
                degraded=True,
            )
        if task.cancelled():
            raise Unavailable("The node is stopping", reason="stopping")
        return task.result()

    async def stop(self) -> None:
        """Cancel what is being fetched."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, key: tuple[str, str, str, bool], task: "asyncio.Task[bytes]") -> None:
        del self._running[key]
        if not task.cancelled() and task.exception() is not None:
            self.failed += 1

    async def _fetch(self, project_id: str, file: File, direct: bool) -> bytes:
        holder = file.holder(self._own)
        try:
            turns = self._at_once.setdefault(holder, asyncio.Semaphore(AT_ONCE))
            async with asyncio.timeout(SECONDS), turns:
                data = await self._from_any(project_id, file, direct)
        except TimeoutError:
            raise _holder_unreachable(
                file, holder, f"did not send it within {SECONDS:g} s"
            ) from None
        self.fetched += 1
        await self._keep(project_id, file, data)
        return data

    async def _from_any(self, project_id: str, file: File, direct: bool) -> bytes:
        """Ask the holder, then those that may have a copy. Raises as `fetch` does."""
        holder = file.holder(self._own)
        holder_error: CallError = CallError("is not a peer of this node now")
        corrupt_source: str | None = None
        for node, link in self._sources(holder, direct):
            try:
                relay = holder not in self._links and holder != self._own
                return await self._download(link, project_id, file, relay=relay)
            except WrongContent as error:
                corrupt_source = corrupt_source or node
                self._notices.refused(
                    "file_content_wrong",
                    (node, file.file_id),
                    peer=node,
                    project=project_id,
                    file=file.file_id,
                    reason=str(error),
                )
            except CallError as error:
                if node == holder:
                    holder_error = error
        raise self._failure(file, holder_error, corrupt_source)

    def _failure(self, file: File, holder_error: CallError, corrupt_source: str | None) -> Refusal:
        """The refusal when no node gave the content: `holder_error` is why its holder didn't,
        `corrupt_source` a node whose content didn't match."""
        holder = file.holder(self._own)
        remedy = f"Ask {file.from_agent} to share the file again"
        if corrupt_source is not None:
            return NodeAway(
                f"The content that {corrupt_source} sends for file {file.file_id} doesn't match "
                f"the file's SHA-256, so it is not shown. {remedy}",
                reason="content_mismatch",
                node=corrupt_source,
                sha256=file.sha256,
            )
        refusal = holder_error.data.get("reason") if isinstance(holder_error, PeerRefused) else None
        if refusal == Damaged.reason:
            return Damaged(
                f"The content of file {file.file_id} is damaged at {holder}, where it was shared, "
                f"and no peer that answers has a copy. {remedy}",
                kind="file_content",
                node=holder,
            )
        if holder == self._own or refusal in LACKS_CONTENT:
            return NotFound(
                f"The content of file {file.file_id} is lost: {holder}, where it was shared, no "
                f"longer has it, and no peer that answers has a copy. {remedy}",
                reason="content_lost",
                kind="file_content",
                node=holder,
            )
        return _holder_unreachable(file, holder, str(holder_error))

    def _sources(self, holder: str, direct: bool) -> Iterator[tuple[str, MeshChannel]]:
        if holder in self._links:
            yield holder, self._links[holder]
        for node, link in [] if direct else list(self._links.items()):
            if node != holder and self._is_up(node):
                yield node, link

    async def _download(
        self, link: MeshChannel, project_id: str, file: File, *, relay: bool
    ) -> bytes:
        """The content from one peer, checked. Raises CallError."""
        data, checksum = bytearray(), hashlib.sha256()
        while len(data) < file.size:
            answer = await link.ask(
                "cacp/sync/file",
                projectId=project_id,
                fileId=file.file_id,
                sha256=file.sha256,
                offset=len(data),
                relay=relay,
            )
            piece = _piece(answer)
            if len(piece) != min(PIECE_MAX, file.size - len(data)):
                raise WrongContent(f"it has not {file.size} bytes in pieces of {PIECE_MAX}")
            data += piece
            checksum.update(piece)
        if checksum.hexdigest() != file.sha256:
            raise WrongContent(f"its SHA-256 is {checksum.hexdigest()}, not {file.sha256}")
        return bytes(data)

    async def _keep(self, project_id: str, file: File, data: bytes) -> None:
        """Keep a copy, dropping the least recently used ones for it; this node's own files stay."""
        own = file.holder(self._own) == self._own
        if not own and len(data) > self._room:
            return

        def keep(transaction: Transaction) -> None:
            db = transaction.connection
            used_at = None if own else transaction.now
            files.put_content(db, project_id, file, FileContent(data, used_at))
            files.make_room(db, self._room)

        # The caller gets the content even if it can't be kept.
        with suppress(Unavailable):
            await self._database.write(keep)


def _piece(answer: object) -> bytes:
    try:
        return base64.b64decode(FileContentResult.model_validate(answer).content, validate=True)
    except (ValidationError, binascii.Error):
        raise PeerRefused("answers with an invalid piece of a file", status=200) from None


def _holder_unreachable(file: File, holder: str, why: str) -> NodeAway:
    reason = one_line(why, SAID_MAX)
    return NodeAway(
        f"The content of file {file.file_id} is at {holder}, which {reason}; no peer that "
        "answers has a copy. Try again later",
        node=holder,
        degraded=True,
    )
