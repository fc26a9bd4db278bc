"""What a disk or a hand has changed in what is stored is found beside the callers, and named."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from schemas.facts import VersionFact
from server.domain.canonical import digest
from server.store import alarms, changes, context_packets, contracts, digests, projects
from server.store.connection import Connection
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Loops
from server.workers.content_audit import ContentAudit
from tests.server.store.conftest import PROJECT
from tests.server.store.test_contracts import HEADER
from tests.server.store.test_digests import changed, packet
from tests.support.located import connect, location_of, prepare

Spoil = Callable[[Connection], object]


def fill(to: Transaction) -> None:
    db = to.connection
    header = projects.ProjectHeader(PROJECT, "n", "o", "planning", "any", 1, 1)
    projects.insert(db, header, [])
    changed(db, "project", PROJECT)
    content = {"path": "/a"}
    version = VersionFact(
        version=1,
        digest=digest(content),
        content=content,
        stamp=1,
        repo_id="r",
        agent_id="a",
        parties=("r",),
        policy="any",
    )
    contracts.insert(db, PROJECT, "c1", HEADER, version)
    changed(db, "contract", "c1")
    for number in range(60):
        context_packets.insert(db, PROJECT, packet(f"p{number:02}", text="good"))
        changed(db, "context", f"p{number:02}")


def alarmed(folder: Path, *spoils: str) -> list[list[str]]:
    """What is on record after each of these statements, and a whole round."""

    async def play() -> list[list[str]]:
        prepare(folder / "cacp.db")
        database = Database(location_of(folder / "cacp.db"))
        await database.open(1)
        await database.write(fill)
        audit = ContentAudit(database, Loops())
        found = []
        for spoil in spoils:
            with closing(connect(folder / "cacp.db")) as db:
                for statement in filter(None, map(str.strip, spoil.split(";"))):
                    db.execute(statement)
            for _ in range(9):
                await audit.step()
            found.append([one.about for one in await database.read(alarms.every)])
        assert audit.rounds > 1
        await database.close()
        return found

    return asyncio.run(play())


GOOD = "SELECT 1;"


@pytest.mark.parametrize(
    ("spoil", "mend", "about"),
    [
        (
            "UPDATE packets SET document = replace(document, 'good', 'evil') "
            "WHERE packet_id = 'p59';",
            "UPDATE packets SET document = replace(document, 'evil', 'good');",
            f"context {PROJECT}/p59",
        ),
        (
            "UPDATE projects SET name = 'm';",
            "UPDATE projects SET name = 'n';",
            f"project {PROJECT}/{PROJECT}",
        ),
        (
            "UPDATE contracts SET name = name || 'x';",
            "UPDATE contracts SET name = substr(name, 1, length(name) - 1);",
            f"contract {PROJECT}/c1",
        ),
        (
            "UPDATE digest_sums SET digest = '00000000000000000000000000000001' "
            "WHERE length(prefix) = 3;",
            "UPDATE digest_sums SET digest = (SELECT digest FROM digests WHERE place = prefix) "
            "WHERE length(prefix) = 3;",
            "the sums of the digests",
        ),
    ],
)
def test_what_was_changed_on_disk_is_named_until_it_is_right(
    tmp_path: Path, spoil: str, mend: str, about: str
) -> None:
    if about == "the sums of the digests":
        mend = GOOD
        assert alarmed(tmp_path, GOOD, spoil) == [[], [about]]
        return
    assert alarmed(tmp_path, GOOD, spoil, mend) == [[], [about], []]


def test_a_write_that_comes_between_is_no_damage(tmp_path: Path) -> None:
    async def play() -> None:
        prepare(tmp_path / "cacp.db")
        database = Database(location_of(tmp_path / "cacp.db"))
        await database.open(1)
        await database.write(fill)
        audit = ContentAudit(database, Loops())

        def rewrite(to: Transaction) -> None:
            to.connection.execute("UPDATE projects SET name = name || 'x'")
            changed(to.connection, "project", PROJECT)

        for _ in range(20):
            await audit.step()
            await database.write(rewrite)
        assert await database.read(alarms.every) == []
        assert not await database.read(lambda db: changes.newest(db) == 0)
        await database.write(lambda to: digests.catch_up(to.connection))
        await database.close()

    asyncio.run(play())


def test_a_write_to_what_is_damaged_does_not_end_its_alarm(tmp_path: Path) -> None:
    """The write has the damage counted: the digests agree, and prove nothing."""
    touch = (
        "INSERT INTO changes (at, origin, actor, action, entity, entity_id, project_id, outcome) "
        "SELECT at, origin, actor, action, entity, entity_id, project_id, outcome FROM changes "
        "WHERE entity = '{}' AND entity_id = '{}' LIMIT 1;"
    )
    about = [f"contract {PROJECT}/c1", f"context {PROJECT}/p07"]
    damage = (
        "UPDATE contracts SET name = name || 'x';"
        "UPDATE packets SET document = replace(document, 'good', 'evil') WHERE packet_id = 'p07';"
    )
    write = touch.format("contract", "c1") + touch.format("context", "p07")
    replaced = "UPDATE packets SET document = replace(document, 'evil', 'new') " + (
        "WHERE packet_id = 'p07';" + touch.format("context", "p07")
    )
    whole = "UPDATE contracts SET name = substr(name, 1, length(name) - 1);" + write
    found = alarmed(tmp_path, GOOD, damage, write, replaced, whole)
    assert [sorted(one) for one in found] == [[], about[::-1], about[::-1], about[:1], []]
