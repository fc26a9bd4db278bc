"""What waits for someone, as a page."""

from tests.support.node import Node


def test_the_page_shows_what_waits(node: Node) -> None:
    twin = node.http.get("/ui/attention.json").json()
    assert twin["waiting"]["total"] >= 0
