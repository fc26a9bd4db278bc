"""Which key a connection gets: the rest is in test_connect.py and test_connect_steps.py."""

import doctest

import pytest
import typer

from cli import connect_key
from cli.connect_key import check_database, default_agent_id, is_known, node_agent
from cli.connect_record import AgentConnection
from tests.support.node import AGENT, Node


def test_the_examples_hold() -> None:
    assert doctest.testmod(connect_key).failed == 0


@pytest.mark.parametrize("node", ["", "local", "http://x/y", "aid://", "aid:///x"])
def test_a_node_without_a_domain_is_local(node: str) -> None:
    assert default_agent_id(node, "shop") == "aid://localhost/shop@1.0.0"


def test_the_node_says_who_it_is_and_whom_it_knows(node: Node, frontend_key: str) -> None:
    assert node_agent(node.url) == AGENT
    assert is_known(node.url, frontend_key)
    assert not is_known(node.url, "cacp_sk_unknownunknownunknown")


def test_a_node_elsewhere_wants_a_key_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    remote = AgentConnection("cursor", "shop", "aid://x/shop", "https://n.example", None, "/none")
    with pytest.raises(typer.Exit) as ended:
        check_database(remote)
    assert ended.value.exit_code == 2
    shown = capsys.readouterr().err
    assert "`cacp keys create aid://x/shop --repo shop`, and give it here with --key-file" in shown


def test_what_is_no_node_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for url, status in (("nope", 2), ("http://127.0.0.1:9", 3)):
        with pytest.raises(typer.Exit) as ended:
            node_agent(url)
        assert ended.value.exit_code == status
    assert capsys.readouterr().err.count("\n") == 2
