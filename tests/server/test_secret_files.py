"""Secrets that a node is given as files."""

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from server.domain.location import DatabaseUrl
from server.secret_files import database_url, read_secret, with_secrets
from server.settings import load

PASSWORD = "p&ss w+rd/%2F=?#@é"
URL = "postgresql://cacp@database/cacp"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "postgresql://cacp@one:5432,two:5433/cacp?target_session_attrs=read-write",
        "postgresql:///cacp?user=cacp&host=/run/postgresql",
    ],
)
def test_libpq_reads_the_password_of_the_file(url: str, file: Path) -> None:
    given = database_url(url, file)
    assert conninfo_to_dict(given) == conninfo_to_dict(url) | {"password": PASSWORD}
    assert "p%26ss" not in DatabaseUrl(given).shown


@pytest.mark.parametrize("url", ["postgresql://cacp:own@host/cacp", f"{URL}?password=own"])
def test_a_password_in_the_url_precedes_the_file(url: str, file: Path) -> None:
    assert database_url(url, file) == url


def test_a_url_without_a_file_stays_as_it_is() -> None:
    assert database_url(URL, None) == URL
    assert database_url("", None) == ""


def test_a_password_without_a_url_is_refused(file: Path) -> None:
    with pytest.raises(ValueError, match="CACP_DATABASE_PASSWORD_FILE needs CACP_DATABASE_URL"):
        database_url("", file)
    with pytest.raises(ValueError, match="should be a URL such as postgresql"):
        database_url("mysql://host/cacp", file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read: No such file"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "can't be read: it is not text"),
    ],
)
def test_a_file_that_holds_no_secret_is_named(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=said) as refused:
        read_secret(path, "CACP_SOME_FILE")
    assert str(refused.value).startswith(f"CACP_SOME_FILE: {path}")


def test_settings_take_what_is_in_the_files(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("a token that a container is given\n")
    given = {"mesh_token_file": str(tmp_path / "token"), "database_password_file": str(file)}
    read = with_secrets(given | {"database_url": URL})
    assert read["mesh_token"] == "a token that a container is given"
    assert read["database_url"] == database_url(URL, file)
    assert with_secrets({"port": 1}) == {"port": 1}

    monkeypatch.setenv("CACP_DATABASE_URL", URL)
    monkeypatch.setenv("CACP_DATABASE_PASSWORD_FILE", str(file))
    settings = load()
    assert settings.location == DatabaseUrl(database_url(URL, file))
    assert PASSWORD not in repr(settings)
    assert "p%26ss" not in repr(settings)
