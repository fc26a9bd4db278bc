"""The page answers browsers, under a strict policy, and only who may read."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.types import Message

from server.page import routes
from server.page.guard import HEADERS, POLICY, PageParts
from server.page.routes import CountedPage
from server.page.view import View
from server.page.views import VIEWS
from server.rpc.answer_budget import AnswerBudget
from server.store.storage import WIDE_READERS
from tests.support.node import AGENT, Node, bearer
from tests.support.waiting import PATIENCE

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
WHOLE_NODE = [view for view in VIEWS.values() if "{" not in view.path]


def page(node: Node, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return node.http.get(path, headers=BROWSER | (headers or {}))


def test_pages_that_come_at_once_leave_a_reader_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change brings all open pages: other callers do not wait behind them."""
    reading, most = 0, 0

    class SessionDouble:
        async def read_wide(self, make: Callable[[Any], bytes]) -> bytes:
            nonlocal reading, most
            reading += 1
            most = max(most, reading)
            await asyncio.sleep(0)
            reading -= 1
            return b""

    async def story() -> None:
        nothing: Any = None
        viewer: Any = SimpleNamespace(caller=SimpleNamespace(agent_id="ana"))
        budget = AnswerBudget(limit=2**20, total=2**20)
        state: Any = SimpleNamespace(dispatcher=SimpleNamespace(budget=budget))
        parts = PageParts(state, *[nothing] * 4)
        await asyncio.gather(
            *(routes._shown(parts, VIEWS["mail"], nothing, viewer) for _ in range(10))
        )

    monkeypatch.setattr(routes, "_session", lambda *given: SessionDouble())
    asyncio.run(story())
    assert 1 <= most < WIDE_READERS


def test_the_root_is_a_page_for_a_browser_and_a_refusal_for_others(node: Node) -> None:
    assert page(node, "/").headers["content-type"].startswith("text/html")
    other = node.http.get("/")
    assert other.status_code == 405
    assert other.headers["allow"] == "POST"
    assert other.json()["error"]["data"]["reason"] == "wrong_http_method"


@pytest.mark.parametrize("view", WHOLE_NODE, ids=lambda view: view.name)
def test_each_view_has_its_twin(node: Node, view: View) -> None:
    path = view.path
    shown = page(node, path)
    assert shown.status_code == 200
    assert f'href="{path}.json' in shown.text
    twin = node.http.get(f"{path}.json")
    assert twin.status_code == 200
    assert isinstance(twin.json(), dict)
    for name, value in HEADERS.items():
        assert twin.headers[name] == value


@pytest.mark.parametrize("path", ["/", "/ui", "/ui/attention", "/ui/nowhere"])
def test_every_page_has_the_policy(node: Node, path: str) -> None:
    response = page(node, path)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "unsafe" not in POLICY
    for forbidden in ("<script>", "<style", " style=", " onclick=", "javascript:"):
        assert forbidden not in response.text


def test_an_unknown_page_says_so_as_a_page(node: Node) -> None:
    response = page(node, "/ui/nowhere")
    assert response.status_code == 404
    assert "There is no such page" in response.text
    assert 'aria-label="Views"' in response.text


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"x-forwarded-for": "192.0.2.1"},
        bearer("cacp_sk_" + "x" * 43),
    ],
    ids=["rebinding", "foreign page", "proxy", "unknown key"],
)
@pytest.mark.parametrize("path", ["/ui/attention.json", "/ui/events?view=attention"])
def test_who_may_not_read_gets_nothing(node: Node, headers: dict[str, str], path: str) -> None:
    assert node.http.get(path, headers=headers).status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/", "/ui/projects.json", "/ui/events?view=projects"])
def test_pages_of_other_sites_load_nothing_in_the_background(
    node: Node, site: str, path: str
) -> None:
    for mode, kind in (("no-cors", "script"), ("cors", "empty"), ("navigate", "iframe")):
        headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": kind}
        assert page(node, path, headers).status_code == 403
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert page(node, "/ui/projects", link).status_code == 200


def test_a_stream_names_its_view(node: Node) -> None:
    response = node.http.get("/ui/events")
    assert response.status_code == 404
    assert "view" in response.json()["error"]["message"]


@pytest.fixture
def lines(node: Node) -> Iterator[Iterator[str]]:
    """An open page's stream."""
    url = f"{node.url}/ui/events?view=attention"
    with httpx.stream("GET", url, timeout=PATIENCE) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        yield response.iter_lines()


def test_an_open_page_is_told_to_look_again(node: Node, lines: Iterator[str]) -> None:
    assert next(lines) == ": cacp page"
    project = node.call("cacp/project/create", name="p", objective="o")["projectId"]
    repo = {"name": "web", "role": "r", "language": "l"}
    node.call("cacp/project/addRepo", projectId=project, repo=repo)
    assert "event: changed" in lines


def test_a_refused_view_is_a_page_with_the_refusals_words(node: Node) -> None:
    response = page(node, "/ui/attention", bearer("cacp_sk_" + "x" * 43))
    assert response.status_code == 401
    assert AGENT not in response.text
    assert "This key is unknown here" in response.text


@pytest.mark.parametrize("reads", [True, False])
def test_a_page_counts_as_an_answer_until_it_is_read(reads: bool) -> None:
    budget = AnswerBudget(limit=2**20, total=2**20)
    sent: list[int] = []

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(budget.taken)
        if not reads:
            raise ConnectionError

    shown = CountedPage(b"page", "text/html", budget.share("ana"))
    with nullcontext() if reads else pytest.raises(ConnectionError):
        asyncio.run(shown({"type": "http"}, receive, send))
    assert set(sent) == {4}
    assert budget.taken == 0


def test_a_page_says_what_it_is_and_how_long(node: Node) -> None:
    shown = page(node, "/ui/projects")
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert int(shown.headers["content-length"]) == len(shown.content)
