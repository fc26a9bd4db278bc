"""Views are declared once, each in its place."""

from pathlib import Path

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Forbidden, InvalidInput
from server.methods.base import Context
from server.page.rendering import templates
from server.page.view import PageCall, url_of
from server.page.viewer import Viewer
from server.page.views import VIEWS
from tests.support.in_process_node import ANA, InProcessNode


def call_of(ctx: Context) -> PageCall:
    return PageCall(ctx, Viewer(ctx.caller), None, {}, {})  # type: ignore[arg-type]


def test_every_view_says_what_it_shows_and_has_a_template() -> None:
    for view in VIEWS.values():
        assert view.about.endswith("."), view.name
        assert templates().get_template(view.template)
        assert view.path.startswith("/ui/")
    assert len({view.path for view in VIEWS.values()}) == len(VIEWS)


def test_a_url_names_its_view_and_quotes_what_it_is_given() -> None:
    assert url_of("attention") == "/ui/attention"
    assert url_of("attention", q="a/b&c", after=None) == "/ui/attention?q=a%2Fb%26c"


def test_a_view_asks_as_its_caller(tmp_path: Path) -> None:
    """The same access and the same errors as a call over HTTP."""
    with InProcessNode(tmp_path) as desk:
        project = desk.call("cacp/project/create", ANA, name="shop", objective="sell")["projectId"]

        def ask(ctx: Context, **params: object) -> object:
            return call_of(ctx).ask("cacp/project/get", **params)

        agent = Caller(ANA, "r", "verified", "key")
        got = desk.run(lambda ctx: ask(ctx, projectId=project), agent)
        assert got["name"] == "shop"
        stranger = Caller(ANA, "r", "verified", "key", projects=frozenset({"another"}))
        with pytest.raises(Forbidden):
            desk.run(lambda ctx: ask(ctx, projectId=project), stranger)
        with pytest.raises(InvalidInput):
            desk.run(lambda ctx: ask(ctx, projectId=project, nonsense=1), agent)


@pytest.mark.parametrize("method", ["cacp/project/create", "acp/claim"])
def test_a_view_only_reads(tmp_path: Path, method: str) -> None:
    with InProcessNode(tmp_path) as desk, pytest.raises(ValueError, match="more than read"):
        desk.run(lambda ctx: call_of(ctx).ask(method))
