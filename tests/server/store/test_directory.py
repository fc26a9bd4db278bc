"""The entries of an ADP exchange on disk."""

import pytest

from schemas.adp import AdpManifest, Capability, Invocation, InvocationProtocol
from server.domain.directory import DirectoryEntry
from server.store import directory
from server.store.connection import Connection
from server.store.directory import KEPT, Registered

AGENT = "aid://example.com/frontend"


def manifest(version: str = "1.0.0", name: str = "Web Agent") -> AdpManifest:
    return AdpManifest(
        aid=f"{AGENT}@{version}",
        name=name,
        capabilities=[Capability(id="ui")],
        invocation=Invocation(protocols=[InvocationProtocol(type="cacp", endpoint="http://a.b")]),
    )


def test_an_agent_has_one_entry_in_whatever_version(db: Connection) -> None:
    directory.put(db, Registered(manifest(), "r", False), now=1)
    renewed = Registered(manifest("2.0.0", "Shop"), AGENT, True)
    directory.put(db, renewed, now=2)
    for version in ("1.0.0", "2.0.0"):
        assert directory.find(db, f"{AGENT}@{version}", now=2) == renewed
    assert directory.entries(db, now=2) == [
        DirectoryEntry(AGENT, "0 2 cacp com example frontend shop ui", "cacp")
    ]
    assert directory.count(db, now=2) == 1


def test_nobody_is_there_at_first(db: Connection) -> None:
    assert directory.find(db, AGENT, now=1) is None
    assert (directory.entries(db, now=1), directory.count(db, now=1)) == ([], 0)


@pytest.mark.parametrize(("age", "listed"), [(KEPT - 1, True), (KEPT, False)])
def test_who_does_not_renew_is_forgotten(db: Connection, age: int, listed: bool) -> None:
    directory.put(db, Registered(manifest(), "r", False), now=1)
    for _ in range(2):
        assert (directory.find(db, AGENT, now=1 + age) is not None) is listed
        assert bool(directory.entries(db, now=1 + age)) is listed
        assert directory.count(db, now=1 + age) == int(listed)
        directory.forget(db, now=1 + age)
    [(rows,)] = db.execute("SELECT count(*) FROM directory")
    assert rows == int(listed)
