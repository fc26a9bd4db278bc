import json
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from proof.messages import (
    WireRequest,
    curl,
    fits_media,
    header_of,
    is_json,
    json_of,
    media_of,
)


@pytest.mark.parametrize(
    "request_",
    [
        WireRequest("GET", "/a%20b", "c=%5B1%5D&d="),
        WireRequest("POST", "/a", "", (("Content-Type", "application/json"),), b'{"a": "it\'s"}'),
        WireRequest("PUT", "/a", "", (("X-Empty", ""), ("X-Two", "a b")), b"@file"),
        WireRequest("PATCH", "/a", "", (("Content-Type", "text/plain"),), b"\x00\xff\n%'\\"),
        WireRequest("DELETE", "/a", "", (), b""),
    ],
)
def test_a_curl_line_repeats_a_request(request_: WireRequest) -> None:
    heard: list[WireRequest] = []

    class Ear(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path, _, query = self.path.partition("?")
            kept = tuple(
                (name, self.headers[name]) for name, _ in request_.headers if name in self.headers
            )
            body_or_none = None if request_.body is None else body
            heard.append(WireRequest(self.command, path, query, kept, body_or_none))
            self.send_response(204)
            self.end_headers()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Ear) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        line = curl(request_, f"http://127.0.0.1:{server.server_port}")
        subprocess.run(["sh", "-c", line], check=True, capture_output=True)
        server.shutdown()
    assert heard == [request_]


def test_a_curl_line_hides_credentials() -> None:
    line = curl(
        WireRequest("GET", "/a", "", (("Authorization", "Bearer secret"), ("X-B", "c"))),
        "http://h",
        ["authorization"],
    )
    assert line == """curl -X GET -H "Authorization: $AUTHORIZATION" -H 'X-B: c' http://h/a"""
    assert curl(WireRequest("HEAD", "/a"), "http://h") == "curl --head http://h/a"


def test_headers_are_of_any_case_and_may_be_several() -> None:
    headers = (("X-a", "1"), ("x-A", "2"), ("Content-Type", "Text/HTML; charset=utf-8"))
    assert header_of(headers, "X-A") == "1, 2"
    assert header_of(headers, "X-B") is None
    assert media_of(headers) == "text/html"
    assert media_of(()) == ""


@pytest.mark.parametrize(
    ("media", "ranges", "taken"),
    [
        ("application/json", ["text/plain", "application/json; charset=utf-8"], 1),
        ("text/csv", ["text/*"], 0),
        ("image/png", ["text/*", "*/*"], 1),
        ("image/png", ["image/jpeg"], None),
        ("", ["text/plain"], None),
    ],
)
def test_a_media_type_is_in_a_range(media: str, ranges: list[str], taken: int | None) -> None:
    assert fits_media(media, ranges) == (None if taken is None else ranges[taken])


def test_kinds_of_json() -> None:
    assert is_json("application/json; charset=utf-8")
    assert is_json("application/problem+json")
    assert not is_json("application/jsonl")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"NaN", b"[" * 100_000])
def test_what_is_no_json_is_said_in_one_line(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"^.{5,100}$"):
        json_of(body)
    assert json_of(json.dumps({"a": [1, None]}).encode()) == {"a": [1, None]}
