"""Moves a whole node from one database into another, of whichever kinds.

The target can't be used until it is whole. The source can't be used from then on: two nodes with
one history would give the same numbers to different changes. A copy, whose source stays in use,
gets a new epoch at its first start.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from server.domain.location import DatabaseUrl, Location
from server.store import portable
from server.store.portable import (
    MoveSource,
    MoveTarget,
    OpenSource,
    OpenTarget,
    Row,
    TableSum,
    carried,
)

SHOWN_EVERY = 1_000
"""Rows between two reports of progress."""


class MoveStep(NamedTuple):
    """What is being done: `copy` or `check` of a table, with the rows that are done of all."""

    action: str
    table: str
    rows: int
    total: int


class MoveResult(NamedTuple):
    """What was moved. `damage` is what was wrong with the content before, by its own digests."""

    tables: dict[str, TableSum]
    damage: str | None

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


Report = Callable[[MoveStep], None]


def move(
    source: Location, target: Location, report: Report, *, keep_source: bool = False
) -> MoveResult:
    """Move a node. With `keep_source` it is copied, and the copy is another history.

    Raises Unavailable while the source is in use, and ValueError when it can't be moved, the target
    is not empty, or what was written differs from what was read: then the target is left as an
    unfinished copy, and the source as it was.
    """
    place, origin = shown(target), shown(source)
    if place == origin:
        raise ValueError("A database can't be moved into itself")
    with _source(source) as former:
        moved_to = former.moved_to()
        # A move that ended between its last two steps is done again.
        if moved_to not in (None, place):
            raise ValueError(f"The node was moved to {moved_to} before: move it from there")
        with _target(target, origin) as new:
            sums = _copy(former, new, report, keep_source=keep_source)
            _check(new, sums, report, keep_source=keep_source)
            damage = new.damage()
            if not keep_source:
                former.mark_moved(place)
            new.finish()
    return MoveResult(sums, damage)


def back_up(
    source: DatabaseUrl, target: Path, report: Report, *, without_secrets: bool = False
) -> MoveResult:
    """Copy a database on a server, which may be in use, to a file: as it was at one moment. The
    file gets a new epoch at its first start, or when it is moved into a server again.

    Raises Unavailable and ValueError.
    """
    from server.store.postgresql.transfer import running_source
    from server.store.sqlite.transfer import target as make_file

    with running_source(source) as former, make_file(target, shown(source)) as copy:
        sums = _copy(former, copy, report, keep_source=True)
        _check(copy, sums, report, keep_source=True)
        damage = copy.damage()
        if without_secrets:
            copy.redact()
        copy.finish()
    return MoveResult(sums, damage)


def shown(location: Location) -> str:
    """A location as people are shown it, and as it is noted in a database."""
    if isinstance(location, DatabaseUrl):
        return location.shown
    return str(location.resolve())


def _source(location: Location) -> OpenSource:
    if isinstance(location, DatabaseUrl):
        from server.store.postgresql.transfer import source as open_database

        return open_database(location)
    from server.store.sqlite.transfer import source as open_file

    return open_file(Path(location))


def _target(location: Location, origin: str) -> OpenTarget:
    if isinstance(location, DatabaseUrl):
        from server.store.postgresql.transfer import target as make_database

        return make_database(location, origin)
    from server.store.sqlite.transfer import target as make_file

    return make_file(Path(location), origin)


def _copy(
    former: MoveSource, new: MoveTarget, report: Report, *, keep_source: bool
) -> dict[str, TableSum]:
    columns = portable.tables()
    left_out = portable.SIGNED_IN if keep_source else frozenset[str]()
    sums = {table: TableSum() for table in new.order(columns.keys() - left_out)}
    for table, copied in sums.items():
        rows = former.rows(table, columns[table])
        if table == "meta":
            rows = carried(rows, columns[table], keep_epoch=not keep_source)
        seen = _reported(rows, MoveStep("copy", table, 0, former.count(table)), report)
        new.fill(table, columns[table], copied.over(seen))
    new.filled(former.counters(), former.last_stamp())
    return sums


def _check(
    new: MoveTarget, sums: dict[str, TableSum], report: Report, *, keep_source: bool
) -> None:
    """Raises ValueError when a table holds other rows than were read from the source."""
    columns = portable.tables()
    for table, copied in sums.items():
        rows = new.rows(table, columns[table])
        if table == "meta":
            rows = carried(rows, columns[table], keep_epoch=not keep_source)
        stored = TableSum()
        for row in _reported(rows, MoveStep("check", table, 0, copied.rows), report):
            stored.add(row)
        if (stored.rows, stored.digest) != (copied.rows, copied.digest):
            raise ValueError(
                f"The table {table} differs: {copied.rows} rows were read and {stored.rows} are "
                "stored, or other ones. Nothing was moved; please report this"
            )


def _reported(rows: Iterable[Row], step: MoveStep, report: Report) -> Iterator[Row]:
    done = 0
    report(step)
    for done, row in enumerate(rows, 1):
        if done % SHOWN_EVERY == 0:
            report(step._replace(rows=done))
        yield row
    report(step._replace(rows=done))
