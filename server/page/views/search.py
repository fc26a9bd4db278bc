"""Search: what of the viewer's mail, of context and contracts has the words."""

from typing import Any

from server.domain.errors import InvalidInput
from server.page.view import Page, PageCall, view

KINDS = ("contract", "context", "mail")
OF_EACH = 8
OF_ONE = 30


@view("search", "/ui/search", title="Search", kinds=("message", "context", "contract"))
def search(call: PageCall) -> Page:
    """What has the words, by kind; of one kind, page by page."""
    text, kind = call.query.get("q", "").strip(), call.query.get("kind")
    page: dict[str, Any] = {"query": text, "kind": kind, "kinds": KINDS, "groups": []}
    if not text:
        return page
    try:
        page["groups"] = [_group(call, text, each) for each in KINDS if kind in (None, each)]
    except InvalidInput as refusal:
        return page | {"problem": refusal.message}
    return page


def _group(call: PageCall, text: str, kind: str) -> dict[str, Any]:
    alone = call.query.get("kind") == kind
    shown = call.ask(
        "cacp/search",
        query=text,
        kinds=[kind],
        projectId=call.query.get("project"),
        limit=OF_ONE if alone else OF_EACH,
        cursor=call.query.get("after") if alone else None,
    )
    return {"kind": kind, **shown}
