"""Handoffs and teamspaces as pages."""

from tests.support.in_process_node import package
from tests.support.node import Node, bearer

BROWSER = {"accept": "text/html"}
HOSTILE = "<img src=x onerror=alert(1)>"


def test_the_board_shows_who_has_what_and_until_when(node: Node) -> None:
    giver = node.key("aid://example.com/giver", "giver")
    taker = node.key("aid://example.com/taker", "taker")
    pack = package("task-of-the-page")
    pack["task"]["title"] = HOSTILE
    made = node.call(
        "acp/handoff",
        key=giver,
        action="initiate",
        to="aid://example.com/taker",
        reason="End of shift " + HOSTILE,
        package=pack,
    )
    shown = node.http.get("/ui/handoffs", headers=BROWSER | bearer(taker)).text
    assert "&lt;img src=x" in shown
    assert "<img" not in shown
    assert "due" in shown
    twin = node.http.get("/ui/handoffs.json?state=proposed", headers=bearer(taker)).json()
    [column] = twin["columns"]
    [entry] = column["handoffs"]
    assert entry["handoff"]["handoffId"] == made["handoff"]["handoffId"]
    assert (entry["isParty"], entry["owner"]) == (True, "aid://example.com/giver")
    assert entry["dueIn"]
    other = node.key("aid://example.com/bystander", "bystander")
    assert "No handoffs" in node.http.get("/ui/handoffs", headers=BROWSER | bearer(other)).text


def test_teamspaces_are_shown_to_their_members(node: Node) -> None:
    lead = node.key("aid://example.com/lead-of-page", "lead")
    node.call("acp/team", key=lead, action="create", team="pageteam", name="Page " + HOSTILE)
    node.call("acp/team", key=lead, action="createTask", team="pageteam", task_id="pt", title="Do")
    shown = node.http.get("/ui/teams", headers=BROWSER | bearer(lead)).text
    assert "Page &lt;img" in shown
    assert "<img" not in shown
    other = node.key("aid://example.com/outsider", "outsider")
    assert "No teamspaces" in node.http.get("/ui/teams", headers=BROWSER | bearer(other)).text
