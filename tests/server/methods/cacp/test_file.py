"""cacp/file/*: files that agents hand to each other (design §5)."""

import base64
import hashlib
import os
from typing import Any

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import AGENT, REPO
from tests.support.shared_files import inline
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

MEBIBYTE = 1024 * 1024
CONTENT = b"\x89PNG\r\n\x1a\n\x00\xff"


def file(content: bytes = CONTENT, name: str = "logo.png") -> dict[str, Any]:
    return inline(content, name)


def test_share_and_get(team: Team) -> None:
    contract = team.proposed()
    shared = team.backend("file/share", file=file(), purpose="Logo", relatedContracts=[contract])
    assert shared == {
        "status": "received",
        "fileId": shared["fileId"],
        "size": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
    }
    got = team.frontend("file/get", fileId=shared["fileId"])
    assert got == {
        "fileId": shared["fileId"],
        "name": "logo.png",
        "contentType": "image/png",
        "size": len(CONTENT),
        "sha256": shared["sha256"],
        "purpose": "Logo",
        "relatedContracts": [contract],
        "fromRepo": team.repo_id(REPO),
        "fromAgent": AGENT,
        "holder": AGENT.partition("@")[0],
        "timestamp": got["timestamp"],
        "content": file()["content"],
    }
    del got["content"]
    assert team.backend("file/list") == {"files": [got]}


def test_a_file_has_a_media_type_even_when_none_is_given(team: Team) -> None:
    shared = team.backend("file/share", file={"name": "a", "content": ""})
    got = team.backend("file/get", fileId=shared["fileId"])
    assert (got["contentType"], got["size"]) == ("application/octet-stream", 0)


def test_a_file_may_have_10_mb_and_not_a_byte_more(team: Team) -> None:
    """Design §5: 10 MB, its own body limit."""
    content = os.urandom(10 * MEBIBYTE)
    shared = team.backend("file/share", file=file(content))
    got = team.backend("file/get", fileId=shared["fileId"])
    assert base64.b64decode(got["content"]) == content
    with refused(-32006, "too_large", path="file.content"):
        team.backend("file/share", file=file(content + b"x"))
    with refused(-32006, "too_large", path="file.content"):
        team.backend("file/share", file=file(content + b"x" * 100))


@pytest.mark.parametrize("text", ["a", "ab=c", "a b=", "äöü=", "YQ==\n", "_-8="])
def test_content_that_is_no_base64_is_refused(team: Team, text: str) -> None:
    with refused(-32602, "invalid_params", path="file.content"):
        team.backend("file/share", file={"name": "a", "content": text})


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\x", "a/b", ".", "\u202egnp.exe"])
def test_a_name_is_a_label_and_never_a_path(team: Team, name: str) -> None:
    """Design §6: file names never become paths."""
    shared = team.backend("file/share", file=file(name=name))
    assert team.backend("file/get", fileId=shared["fileId"])["name"] == name


def test_list_goes_page_by_page(team: Team) -> None:
    made = [team.backend("file/share", file=file())["fileId"] for _ in range(3)]
    first = team.backend("file/list", limit=2)
    rest = team.backend("file/list", limit=2, cursor=first["nextCursor"])
    assert "nextCursor" not in rest
    assert [one["fileId"] for one in first["files"] + rest["files"]] == made


def test_a_cursor_is_one_that_was_given(team: Team) -> None:
    for method in ("file/list", "file/listRequests"):
        with refused(-32602, "invalid_params", path="cursor"):
            team.backend(method, cursor="tomorrow")


def test_requests_are_listed_page_by_page(team: Team) -> None:
    made = [team.backend("file/request", description="d")["requestId"] for _ in range(3)]
    first = team.backend("file/listRequests", limit=2)
    rest = team.backend("file/listRequests", limit=2, cursor=first["nextCursor"])
    assert "nextCursor" not in rest
    assert [one["requestId"] for one in first["requests"] + rest["requests"]] == made


def test_what_fulfils_a_long_request_can_be_told_to_others(team: Team) -> None:
    """Its purpose names the request: no longer than a purpose may be."""
    asked = team.frontend("file/request", description="x" * 20_000)["requestId"]
    done = team.backend("file/fulfillRequest", requestId=asked, file=file())
    [listed] = team.backend("file/list")["files"]
    assert (listed["fileId"], len(listed["purpose"])) == (done["fileId"], 20_000)


def test_a_file_of_another_project_is_not_found(team: Team) -> None:
    shared = Team.on(team.node, team.key).backend("file/share", file=file())
    with refused(-32602, "not_found", kind="file", fileId=shared["fileId"]):
        team.backend("file/get", fileId=shared["fileId"])


def test_a_request_is_open_until_it_is_fulfilled(team: Team) -> None:
    asked = team.frontend("file/request", description="The logo", suggestedFormat="png")
    assert asked == {"status": "request_received", "requestId": asked["requestId"]}
    [listed] = team.backend("file/listRequests")["requests"]
    assert listed == {
        "requestId": asked["requestId"],
        "projectId": team.project,
        "requestedBy": team.repo_id(FRONTEND),
        "description": "The logo",
        "suggestedFormat": "png",
        "timestamp": listed["timestamp"],
    }
    done = team.backend("file/fulfillRequest", requestId=asked["requestId"], file=file())
    assert done == {
        "status": "fulfilled",
        "requestId": asked["requestId"],
        "fileId": done["fileId"],
        "size": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
    }
    assert team.backend("file/listRequests") == {"requests": []}
    got = team.frontend("file/get", fileId=done["fileId"])
    assert (got["purpose"], got["fromAgent"]) == ("For: The logo", AGENT)
    assert got["fulfils"] == asked["requestId"]
    with refused(-32004, "already_fulfilled", fileId=done["fileId"]):
        team.backend("file/fulfillRequest", requestId=asked["requestId"], file=file())


def test_a_request_is_fulfilled_without_naming_its_project(team: Team) -> None:
    asked = team.backend("file/request", description="The logo")["requestId"]
    done = team.node.call("cacp/file/fulfillRequest", key=team.key, requestId=asked, file=file())
    assert team.backend("file/get", fileId=done["fileId"])["fromAgent"] == FRONTEND_AGENT


def test_an_unknown_request_is_not_found(team: Team) -> None:
    asked = Team.on(team.node, team.key).backend("file/request", description="d")["requestId"]
    for request in ("nothing", asked):
        with refused(-32602, "not_found", kind="file_request", requestId=request):
            team.backend("file/fulfillRequest", requestId=request, file=file())
