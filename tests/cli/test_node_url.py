"""Which node commands call: the order is documented, and an old address misleads nobody."""

import doctest
from pathlib import Path

import pytest

from cli import node_url
from cli.node_url import DEFAULT_DB, DEFAULT_URL, chosen_url, location, own_url
from server.domain.location import DatabaseUrl
from server.settings import Settings
from tests.cli.run import cacp
from tests.support.node import Node, free_port

PORT = "http://127.0.0.1:9000"
RUNNING = "http://127.0.0.1:9001"


def test_the_examples_hold() -> None:
    assert doctest.testmod(node_url).failed == 0


@pytest.mark.parametrize(
    ("variables", "running", "url", "source"),
    [
        ({"CACP_URL": "https://n", "CACP_PORT": "9000"}, RUNNING, "https://n", "CACP_URL"),
        ({"CACP_PORT": "9000", "CACP_DB": "a.db"}, RUNNING, PORT, "CACP_PORT"),
        ({"CACP_PORT": "9000", "CACP_HOST": "::"}, None, "http://[::1]:9000", "CACP_PORT"),
        ({"CACP_PORT": "0"}, RUNNING, RUNNING, "the node that runs on data/cacp.db"),
        ({"CACP_DB": "a.db"}, RUNNING, RUNNING, "the node that runs on a.db"),
        ({"CACP_URL": "", "CACP_PORT": ""}, None, DEFAULT_URL, "the default"),
    ],
)
def test_the_order(variables: dict[str, str], running: str | None, url: str, source: str) -> None:
    assert chosen_url(variables, lambda db: running) == (url, source)


def test_the_defaults_are_those_of_a_node() -> None:
    settings = Settings.model_fields
    assert settings["db"].default == Path(DEFAULT_DB)
    assert own_url(settings["host"].default, settings["port"].default) == DEFAULT_URL


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("node.example", "http://node.example:80"),
    ],
)
def test_own_url(host: str, url: str) -> None:
    assert own_url(host, 80) == url


def test_commands_call_the_node_that_runs_on_the_folders_database(node: Node) -> None:
    assert f"127.0.0.1:{node.port}" in cacp("status", db=str(node.db)).stdout
    assert f"127.0.0.1:{node.port}" in cacp("status", port=str(node.port), db="none.db").stdout
    elsewhere = f"http://127.0.0.1:{free_port()}"
    for done in (
        cacp("status", "--url", elsewhere, db=str(node.db)),
        cacp("status", url=elsewhere, port=str(node.port)),
    ):
        assert done.exit_code == 3
        assert elsewhere in done.stderr


def test_a_port_that_is_none_is_wrong_usage() -> None:
    done = cacp("status", port="http")
    assert done.exit_code == 2
    assert "CACP_PORT should be a port" in done.stderr


URL = "postgresql://me@host/cacp"


@pytest.mark.parametrize(
    ("named", "variables", "place"),
    [
        (None, {}, Path(DEFAULT_DB)),
        (None, {"CACP_DB": "a.db"}, Path("a.db")),
        (None, {"CACP_DB": "a.db", "CACP_DATABASE_URL": URL}, DatabaseUrl(URL)),
        ("b.db", {"CACP_DB": "a.db", "CACP_DATABASE_URL": URL}, Path("b.db")),
        (Path("b.db"), {"CACP_DATABASE_URL": URL}, Path("b.db")),
        (URL, {"CACP_DB": "a.db"}, DatabaseUrl(URL)),
    ],
)
def test_the_database_of_a_command(
    named: str | Path | None, variables: dict[str, str], place: Path | DatabaseUrl
) -> None:
    assert location(named, variables) == place


def test_the_password_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a/b\n")
    variables = {"CACP_DATABASE_URL": URL, "CACP_DATABASE_PASSWORD_FILE": str(file)}
    assert location(None, variables) == f"{URL}?password=a%2Fb"
    assert location("a.db", variables) == Path("a.db")
    with pytest.raises(ValueError, match="can't be read"):
        location(URL, {"CACP_DATABASE_PASSWORD_FILE": str(tmp_path / "none")})


def test_other_databases_are_refused() -> None:
    with pytest.raises(ValueError, match="should be a URL such as postgresql://"):
        location("mysql://host/x", {})
