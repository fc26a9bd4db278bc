"""What versions from before their keys named the parties become (design §3, §7)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from peers.digest import Name
from schemas.facts import Fact, ResponseFact, VersionFact, json_of
from server.domain.canonical import digest
from server.store import contracts, digests
from server.store.sqlite.schema import migrations

PUT = "INSERT INTO facts VALUES (?, ?, ?, 'p', ?, ?, NULL)"
CONTRACT = Name("contract", "p", "c")
SORTED = orjson.OPT_SORT_KEYS


def version(*parties: str, number: int = 1) -> VersionFact:
    return VersionFact(
        version=number,
        digest=digest({"n": number}),
        stamp=number,
        content={"n": number},
        repo_id="api",
        agent_id="aid://example.com/api@1.0.0",
        parties=parties,
        policy="any",
        parent=None if number == 1 else digest({"n": number - 1}),
    )


def text(fact: Fact) -> str:
    return json_of(fact).decode()


def test_versions_from_before_are_found_by_their_keys_and_count_as_before(tmp_path: Path) -> None:
    """0032: nodes of both releases that hold the same have the same digest."""
    versions = [version("web", "api", "web"), version("api", "\U0001f600", number=2)]
    said = ResponseFact(
        version=2,
        digest=versions[1].digest,
        stamp=3,
        repo_id="web",
        agent_id="aid://example.com/web@1.0.0",
        action="agree",
    )
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "versions_by_parties":
                for fact in versions:
                    db.execute(PUT, ("c", "version", fact.place, fact.stamp, text(fact)))
                db.execute(PUT, ("c", "response", said.key, said.stamp, text(said)))
                db.execute(PUT, ("damaged", "version", "1/x", 1, '{"version":1,'))
                parts = [
                    f"{kind}\n{key}\n".encode() + orjson.dumps(orjson.loads(body), option=SORTED)
                    for kind, key, body in db.execute(
                        "SELECT kind, key, body FROM facts WHERE contract_id = 'c'"
                    )
                ]
                one.run(db)
            one.run(db)
        for fact in versions:
            assert contracts._version_fact(db, "c", fact.key) == fact
        assert len(contracts.facts_of(db, "c")) == 3
        assert sorted(digests._state(db, CONTRACT)) == sorted(parts)
        kept = db.execute("SELECT key FROM facts WHERE contract_id = 'damaged'").fetchall()
        assert kept == [("1/x",)]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=4))
def test_whatever_parties_are_called(parties: list[str]) -> None:
    fact = version(*parties)
    [one] = [one for one in migrations() if one.name == "versions_by_parties"]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE facts (contract_id, kind, key, project_id, stamp, body, sig)")
        db.execute(PUT, ("c", "version", fact.place, 1, text(fact)))
        one.run(db)
        assert db.execute("SELECT key FROM facts").fetchall() == [(fact.key,)]
