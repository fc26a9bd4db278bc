"""The worker that keeps the full-text index."""

import asyncio
from contextlib import closing
from functools import partial
from pathlib import Path

from server.domain.search import parse
from server.store import projects, search
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.projects import ProjectHeader
from server.store.search import SearchReader
from server.util.loops import Loops
from server.util.service import running
from server.workers.search_indexer import SearchIndexer
from tests.support.located import connect, location_of, prepare

READER = SearchReader(None, human=False, projects=None)


def put_packet(to: Transaction, id: str, text: str) -> None:
    document = f'{{"type":"decision","content":{{"decision":"{text}"}}}}'
    to.connection.execute(
        "INSERT INTO packets (project_id, packet_id, type, stamp, document)"
        " VALUES ('p', ?, 'decision', 1, ?)",
        (id, document),
    )


def test_it_indexes_what_is_stored_and_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    prepare(path)
    with closing(connect(path)) as db:
        header = ProjectHeader("p", "Shop", "Sell", "planning", "any", 1, 1)
        projects.insert(db, header, [])
    asyncio.run(_indexes(path))


async def _indexes(path: Path) -> None:
    database = Database(location_of(path))
    await database.open(0)
    try:
        for number in range(120):
            await database.write(partial(put_packet, id=f"a{number}", text="before"))
        loops = Loops()
        async with running([SearchIndexer(database, loops)]):
            await _until_indexed(database)
            assert await _count(database, "before") == 120
            await database.write(lambda to: put_packet(to, "b", "after"))
            await _until_indexed(database)
            assert await _count(database, "after") == 1
        assert not loops.failing
    finally:
        await database.close()


async def _until_indexed(database: Database) -> None:
    async with asyncio.timeout(30):
        while (
            not (await database.read(search.is_ready)) or (await database.read(search.waiting)) > 0
        ):
            await database.next_commit.wait()


async def _count(database: Database, word: str) -> int:
    query = parse(word)
    hits = await database.read(lambda db: search.hits(db, query, READER, ("context",), None, 1000))
    return len(hits)
