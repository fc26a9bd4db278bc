"""Search as a page."""

from tests.support.node import Node
from tests.support.team import Team
from tests.support.waiting import eventually

BROWSER = {"accept": "text/html"}


def test_hits_are_shown_by_kind_with_marked_words(node: Node, team: Team) -> None:
    contract = team.proposed(name="searchZebra<b>", content={"path": "/zebra/<i>"})
    team.backend("context/askQuestion", question="Which zebra is it?")

    def all_are_indexed() -> bool:
        twin = node.http.get("/ui/search.json", params={"q": "zebra"}).json()
        return [len(group["hits"]) for group in twin["groups"]] == [1, 1, 0]

    eventually(all_are_indexed)
    shown = node.http.get("/ui/search", params={"q": "zebra"}, headers=BROWSER).text
    assert "/<mark>zebra</mark>/&lt;i&gt;" in shown
    assert "searchZebra&lt;b&gt;" in shown
    assert "Which <mark>zebra</mark> is it?" in shown
    [hit] = node.http.get("/ui/search.json", params={"q": "zebra", "kind": "contract"}).json()[
        "groups"
    ][0]["hits"]
    assert hit["contractId"] == contract


def test_what_can_not_be_searched_for_is_said_in_place(node: Node) -> None:
    shown = node.http.get("/ui/search", params={"q": "-draft"}, headers=BROWSER)
    assert shown.status_code == 200
    assert "must contain a word" in shown.text
    empty = node.http.get("/ui/search", headers=BROWSER)
    assert "Search mail, context and contracts" in empty.text
    nothing = node.http.get("/ui/search", params={"q": "'\"<b>xyzzyx"}, headers=BROWSER)
    assert "Nothing has these words" in nothing.text
