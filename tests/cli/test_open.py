"""`cacp open`: a link that signs in once, in a browser or printed."""

import doctest
import webbrowser
from urllib.parse import unquote

import pytest

from tests.cli.run import cacp
from tests.server.page.browsing import ANY_PAGE, Browser
from tests.support.node import Node
from tests.support.team import Team

HUGH = "aid://example.com/hugh-opens"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The links that a browser was opened with."""
    links: list[str] = []

    def take(link: str) -> bool:
        links.append(link)
        return True

    monkeypatch.setattr(webbrowser, "open", take)
    monkeypatch.setenv("DISPLAY", ":0")
    return links


def test_the_examples_hold() -> None:
    import cli.open

    assert doctest.testmod(cli.open).failed == 0


def test_with_a_key_the_link_signs_in_once(node: Node, opened: list[str]) -> None:
    key = node.key(HUGH, "", human=True)
    done = cacp("open", "runs", url=node.url, key=key)
    assert (done.exit_code, done.output) == (0, "")
    [link] = opened
    page, _, fragment = link.partition("#")
    assert page == f"{node.url}/ui/enter"
    assert key not in link
    code, _, to = fragment.partition("&next=")
    browser = Browser(node)
    assert browser.post("/ui/enter", {"code": code, "next": unquote(to)}).json() == {
        "next": "/ui/runs"
    }
    assert HUGH.rpartition("/")[2] in browser.get(ANY_PAGE).text


def test_without_a_key_the_page_opens_as_it_is(node: Node, opened: list[str]) -> None:
    assert cacp("open", url=node.url).exit_code == 0
    assert opened == [f"{node.url}/ui/attention"]


def test_print_opens_nothing(node: Node, opened: list[str]) -> None:
    done = cacp("open", "/ui/mail", "--print", url=node.url)
    assert done.stdout == f"{node.url}/ui/mail\n"
    assert opened == []


def test_without_a_browser_the_link_is_printed(
    node: Node, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    done = cacp("open", url=node.url)
    assert done.stdout == f"{node.url}/ui/attention\n"
    assert "there is no browser to open here" in done.stderr
    assert opened == []


def test_a_view_of_a_project_and_a_contract(team: Team, opened: list[str]) -> None:
    contract, url = team.proposed(name="Opens"), team.node.url
    at = f"{url}/ui/projects/{team.project}"
    for words, link in (
        (["matrix", "--project", team.project], f"{at}/matrix"),
        (["--project", team.project], at),
        (["--contract", contract], f"{at}/contracts/{contract}"),
        (["activity", "-p", team.project], f"{url}/ui/activity?project={team.project}"),
    ):
        done = cacp("open", *words, "--print", url=url)
        assert done.output == f"{link}\n"


@pytest.mark.parametrize(
    "words",
    [["nowhere"], ["matrix"], ["contract"], ["//evil.example"], ["/metrics"], ["thread"]],
)
def test_wrong_use_is_named(node: Node, words: list[str]) -> None:
    assert cacp("open", *words, url=node.url).exit_code == 2


def test_a_node_that_is_away_and_a_wrong_key(node: Node, opened: list[str]) -> None:
    assert cacp("open", url="http://127.0.0.1:9").exit_code == 3
    assert cacp("open", url=node.url, key="cacp_sk_" + "x" * 43).exit_code == 1
    assert opened == []
