"""Fetches the content of files of other nodes, when somebody asks for it (design §7).

In pieces, from the node that holds a file or from one that has a copy; checked by its SHA-256
before anybody gets a byte of it, and kept as long as there is room. Nothing is on disk before it is
whole, so there is nothing to mend when the node is killed meanwhile.
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

from peers.errors import CallError, Refused
from peers.sender import Sender
from schemas.file_mesh import PIECE_MAX, FileContentResult
from schemas.plain import one_line
from server.domain.agents import identity
from server.domain.errors import Damaged, NodeAway, NotFound, Unavailable
from server.mesh.mesh_channel import MeshChannel
from server.node import Node
from server.store import files
from server.store.database import Database, Transaction
from server.store.files import File, FileContent
from server.util.log_once import LogOnce

log = structlog.get_logger()

PATIENCE = 20.0
"""Seconds that a caller waits, less than what callers commonly wait for an answer. The fetching
goes on: who asks again finds it further, or done."""
SECONDS = 300.0
"""For the whole of a file, from all who may have it."""
AT_ONCE = 2
"""Files that are fetched from one holder at once; more wait. Others are not held up by one that
hangs, and no more than so many are in memory for each."""
SAID_MAX = 300


class WrongContent(CallError):
    """What came is not what the file's SHA-256 says."""


class FileFetcher:
    """Fetches each content once, however many ask for it.

    `links` are those to the peers, by agent without version; `is_up` says whether one answers.
    `room` is how many bytes of copies are kept.
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
        """Of each holder, while anything is fetched from it: peers name as many as they like."""
        self._notices = LogOnce()
        self.fetched = 0
        """Contents that came whole and right."""
        self.failed = 0
        """Contents that nobody gave, or that were wrong."""

    async def fetch(self, project_id: str, file: File, *, direct: bool = False) -> bytes:
        """The content of a file that is not here; `direct`: from its holder alone.

        Raises NodeAway when it can't be had now, and NotFound when its holder has lost it.
        """
        key = (project_id, file.file_id, file.sha256, direct)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(project_id, file, direct))
            self._running[key] = task
            task.add_done_callback(partial(self._done, key))
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if not done:
            raise NodeAway(
                f"The content of file {file.file_id} is still on its way here: try again soon",
                reason="being_fetched",
                node=file.holder(self._own),
                degraded=True,
            )
        if task.cancelled():
            raise Unavailable("The node is stopping", reason="stopping")
        return task.result()

    async def stop(self) -> None:
        """End what is under way."""
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
            raise _away(file, holder, f"did not give it within {SECONDS:g} s") from None
        self.fetched += 1
        await self._keep(project_id, file, data)
        return data

    async def _from_any(self, project_id: str, file: File, direct: bool) -> bytes:
        """Ask the holder, then those that may have a copy. Raises as `fetch` does."""
        holder = file.holder(self._own)
        why: CallError = CallError("is no peer of this node now")
        wrong: str | None = None
        for node, link in self._sources(holder, direct):
            try:
                relay = holder not in self._links and holder != self._own
                return await self._download(link, project_id, file, relay=relay)
            except WrongContent as error:
                wrong = wrong or node
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
                    why = error
        if wrong is not None:
            raise NodeAway(
                f"What {wrong} sends for file {file.file_id} is not what the file's SHA-256 says: "
                "it is not shown. Have the file shared anew",
                reason="content_mismatch",
                node=wrong,
                sha256=file.sha256,
            )
        if isinstance(why, Refused) and why.data.get("reason") == Damaged.reason:
            raise Damaged(
                f"The content of file {file.file_id} is damaged at {holder}, where it was shared, "
                "and no peer that answers has a copy. Have the file shared anew",
                kind="file_content",
                node=holder,
            )
        if holder == self._own or (isinstance(why, Refused) and _has_none(why)):
            raise NotFound(
                f"The content of file {file.file_id} is lost: {holder}, where it was shared, has "
                "it no more, and no peer that answers has a copy. Have the file shared anew",
                reason="content_lost",
                kind="file_content",
                node=holder,
            )
        raise _away(file, holder, str(why))

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
        data, found = bytearray(), hashlib.sha256()
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
            found.update(piece)
        if found.hexdigest() != file.sha256:
            raise WrongContent(f"its SHA-256 is {found.hexdigest()}, not {file.sha256}")
        return bytes(data)

    async def _keep(self, project_id: str, file: File, data: bytes) -> None:
        """Keep a copy, the least recently used making room; what is this node's own, for good."""
        own = file.holder(self._own) == self._own
        if not own and len(data) > self._room:
            return

        def keep(transaction: Transaction) -> None:
            db = transaction.connection
            used_at = None if own else transaction.now
            files.put_content(db, project_id, file, FileContent(data, used_at))
            files.make_room(db, self._room)

        # The caller has what it asked for, whether it can be kept or not.
        with suppress(Unavailable):
            await self._database.write(keep)


def answers(senders: Mapping[str, Sender], node: str) -> bool:
    """Whether a peer, named without its version, answered when it was last called."""
    return any(identity(one) == node and not sender.failures for one, sender in senders.items())


def _piece(answer: object) -> bytes:
    try:
        return base64.b64decode(FileContentResult.model_validate(answer).content, validate=True)
    except (ValidationError, binascii.Error):
        raise Refused("answers with what is no piece of a file", status=200) from None


def _has_none(refused: Refused) -> bool:
    return refused.data.get("reason") in ("no_content", "not_found")


def _away(file: File, holder: str, why: str) -> NodeAway:
    said = one_line(why, SAID_MAX)
    return NodeAway(
        f"The content of file {file.file_id} is at {holder}, which {said}; no peer that "
        "answers has a copy. Try again later",
        node=holder,
        degraded=True,
    )
