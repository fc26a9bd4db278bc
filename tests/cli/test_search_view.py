"""The hits of a search at a terminal."""

from cli.search_view import hits_text

CONTRACT = {
    "kind": "contract",
    "title": "createUser",
    "snippet": {"text": "path: /users", "marks": [[7, 12]]},
    "author": "backend",
    "at": "2026-01-01T00:00:00.000000+00:00",
    "type": "api_endpoint",
    "status": "agreed",
    "projectId": "p",
    "projectName": "Shop",
    "contractId": "c1",
}
MAIL = {
    "kind": "mail",
    "title": "a\x1b[31m\u202etitle",
    "snippet": {"text": "[bold]hello", "marks": []},
    "at": "2026-01-01T00:00:00.000000+00:00",
    "type": "knowledge.push",
    "threadId": "t1",
}


def test_each_hit_has_its_words_and_the_command_that_opens_it() -> None:
    text = hits_text({"hits": [CONTRACT, MAIL], "nextCursor": "9"})
    lines = text.plain.splitlines()
    assert lines[0] == "createUser  agreed"
    assert lines[1] == "  path: /users"
    assert "contract api_endpoint of backend in Shop" in lines[2]
    assert lines[3] == "  cacp show c1"
    assert "atitle" in lines
    assert "  [bold]hello" in lines, "no markup"
    assert "  cacp call acp/thread thread_id=t1" in lines
    assert lines[-1] == "There are more: --cursor 9"
    assert [
        text.plain[span.start : span.end] for span in text.spans if span.style == "bold yellow"
    ] == ["users"]
