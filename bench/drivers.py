"""`python -m bench.drivers`: a group of writes over the drivers for PostgreSQL, in turn.

Each group is one transaction of 64 calls, each of which reads twice and inserts five rows, as
contract/propose does. asyncpg is no dependency of the project: install it beside it to compare.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import closing

import psycopg

from bench import replicas
from server.domain.location import DatabaseUrl
from server.store.opening import prepare
from server.store.postgresql.connection import PgConnection

CALLS = 64
GROUPS = 30
TABLES = 5
READ = "SELECT id FROM t0 WHERE id = {} LIMIT 1"
INSERT = "INSERT INTO t{} (id, text) VALUES ({}, {})"
TEXT = "x" * 300


def make(url: str) -> None:
    """The tables that the groups write to."""
    with psycopg.connect(url, autocommit=True) as db:
        for number in range(TABLES):
            db.execute(f"CREATE TABLE IF NOT EXISTS t{number} (id BIGINT, text TEXT)".encode())
            db.execute(f"CREATE INDEX IF NOT EXISTS i{number} ON t{number} (id)".encode())


def own(url: str, *, reads: int, rounds: int) -> list[float]:
    """Seconds of each group over this project's connection."""
    read = READ.format("?")
    inserts = [INSERT.format(number, "?", "?") for number in range(TABLES)]
    seconds = []
    with closing(PgConnection(url)) as db:
        for _ in range(rounds):
            started = time.perf_counter()
            db.execute("BEGIN IMMEDIATE")
            for call in range(CALLS):
                for _ in range(reads):
                    db.execute(read, (-call,)).fetchall()
                for insert in inserts:
                    db.execute(insert, (call, TEXT))
            db.execute("COMMIT")
            seconds.append(time.perf_counter() - started)
    return seconds


async def asyncpg(url: str, *, reads: int, rounds: int) -> list[float]:
    """The same over asyncpg, which waits for each statement."""
    import asyncpg as driver

    connection = await driver.connect(url)
    read = await connection.prepare(READ.format("$1"))
    inserts = [
        await connection.prepare(INSERT.format(number, "$1", "$2")) for number in range(TABLES)
    ]
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        async with connection.transaction():
            for call in range(CALLS):
                for _ in range(reads):
                    await read.fetch(-call)
                for insert in inserts:
                    await insert.fetch(call, TEXT)
        seconds.append(time.perf_counter() - started)
    await connection.close()
    return seconds


async def psycopg_pipeline(url: str, *, reads: int, rounds: int) -> list[float]:
    """The same over psycopg's own connection in pipeline mode."""
    connection = await psycopg.AsyncConnection.connect(url)
    connection.prepare_threshold = 0
    read, inserts = (
        READ.format("%s"),
        [INSERT.format(number, "%s", "%s") for number in range(TABLES)],
    )
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        async with connection.pipeline(), connection.transaction():
            for call in range(CALLS):
                for _ in range(reads):
                    await (await connection.execute(read.encode(), (-call,))).fetchall()
                for insert in inserts:
                    await connection.execute(insert.encode(), (call, TEXT))
        seconds.append(time.perf_counter() - started)
    await connection.close()
    return seconds


def main() -> None:
    with replicas.database() as server:
        url = str(server.create_database("drivers"))

        prepare(DatabaseUrl(url))
        make(url)
        print(
            f"{CALLS} calls in one transaction, five inserts each: milliseconds, median of {GROUPS}"
        )
        ways: dict[str, Callable[..., list[float] | Awaitable[list[float]]]] = {
            "this project's connection": own,
            "asyncpg": asyncpg,
            "psycopg, pipeline": psycopg_pipeline,
        }
        for reads in (2, 0):
            for name, way in ways.items():
                taken = way(url, reads=reads, rounds=GROUPS)
                seconds = taken if isinstance(taken, list) else asyncio.run(_awaited(taken))
                print(f"  {reads} reads   {name:28} {statistics.median(seconds) * 1000:8.1f}")


async def _awaited(taken: Awaitable[list[float]]) -> list[float]:
    return await taken


if __name__ == "__main__":
    main()
