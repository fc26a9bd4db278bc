"""Where a node's database is, and what people are shown of it."""

from pathlib import Path

import pytest

from server.domain.location import DatabaseUrl, check_database_url, file_path, location_of


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ana:secret@db.example:5432/cacp", "postgresql://ana@db.example:5432/cacp"),
        ("postgresql://ana:s%40crét@db/cacp", "postgresql://ana@db/cacp"),
        (
            "postgresql://db/cacp?password=secret&sslmode=require",
            "postgresql://db/cacp?sslmode=require",
        ),
        ("postgresql://db/cacp?sslpassword=secret", "postgresql://db/cacp"),
        ("postgresql:///cacp?host=/run/postgresql", "postgresql:///cacp?host=%2Frun%2Fpostgresql"),
        ("postgresql://a:x@one:1,two:2/cacp", "postgresql://a@one:1,two:2/cacp"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert DatabaseUrl(url).shown == shown
    assert "secret" not in repr(DatabaseUrl(url))
    assert str(DatabaseUrl(url)) == url


def test_a_url_takes_the_place_of_the_file() -> None:
    assert location_of("", Path("data/cacp.db")) == Path("data/cacp.db")
    assert location_of("postgresql://db/cacp", Path("x")) == DatabaseUrl("postgresql://db/cacp")


@pytest.mark.parametrize("url", ["", "postgresql://db/cacp", "postgres:///cacp?host=/run"])
def test_a_postgresql_url_is_taken(url: str) -> None:
    check_database_url(url)


@pytest.mark.parametrize("url", ["mysql://db/cacp", "cacp", "postgresql:", "postgresql://[1/x"])
def test_any_other_is_refused_with_what_would_be_right(url: str) -> None:
    with pytest.raises(ValueError, match="postgresql://user@host:5432/cacp"):
        check_database_url(url)


@pytest.mark.parametrize("path", ["postgresql://db/cacp", "postgres:///cacp", "sqlite:///node.db"])
def test_a_url_is_no_file(path: str) -> None:
    with pytest.raises(ValueError, match="--database"):
        file_path(Path(path))


@pytest.mark.parametrize(
    "path", ["data/cacp.db", "/var/lib/cacp/cacp.db", "C:/data/cacp.db", "a:b.db"]
)
def test_a_path_is_one(path: str) -> None:
    assert file_path(Path(path)) == Path(path)
