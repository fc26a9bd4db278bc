"""A view on a node without a process: what it loads, and its HTML."""

from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, cast

import orjson

from server.auth.authenticator import Caller
from server.http.routes import AppState
from server.page.rendering import render
from server.page.view import Page, PageCall, url_of
from server.page.viewer import Viewer
from server.page.views import VIEWS
from tests.support.in_process_node import InProcessNode


def look(
    desk: InProcessNode, name: str, caller: Caller, path: dict[str, str] | None = None, **query: str
) -> tuple[Page, str]:
    """The page of a view as its twin gives it, and its HTML."""
    view, place = VIEWS[name], path or {}
    viewer = Viewer(caller)

    def load(ctx: Any) -> Page:
        return view.load(PageCall(ctx, viewer, cast(AppState, None), place, query))

    page: Page = orjson.loads(orjson.dumps(desk.run(load, caller, f"page/{name}")))
    html = render(
        view.template,
        now=desk.now,
        page=page,
        view=view,
        viewer=viewer,
        path=url_of(name, **place),
        query=query,
        project_id=place.get("project_id"),
        seq="epoch:1",
        node=SimpleNamespace(agent_id=desk.node.agent_id),
    )
    return page, html


class Markup(HTMLParser):
    """The tags and links of a page; no element may have a handler or a style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), attrs
