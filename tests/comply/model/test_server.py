"""The scripted model as a process, asked as agents ask it."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from comply.model import server
from tests.cli.run import environment_of
from tests.support.forkserver import ForkedProcess
from tests.support.waiting import PATIENCE, eventually

HELLO = "Hello! This is a scripted model."
SAY: list[Any] = [{"role": "user", "content": "Say hello."}]


class Running:
    """`cacp comply model` on a free port."""

    def __init__(self, folder: Path) -> None:
        self.log, self.said, self.errors = (folder / name for name in ("log", "said", "errors"))
        command = ["comply", "model", "--port", "0", "--log", str(self.log), "--bodies"]
        self.process = ForkedProcess(command, environment_of(), self.said, self.errors)
        eventually(lambda: self.said.read_text().endswith("\n"))
        self.url = self.said.read_text().strip()
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def latest(self) -> Any:
        """The last line of the log."""
        return json.loads(self.log.read_text().splitlines()[-1])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("model"))
    yield running
    running.client.close()
    running.process.terminate()
    assert running.process.wait(PATIENCE) == -signal.SIGTERM
    assert running.errors.read_text() == ""


def test_it_listens_on_loopback_only(model: Running) -> None:
    assert model.url.startswith("http://127.0.0.1:")
    with server.listen(0) as at:
        assert at.getsockname()[0] == "127.0.0.1"


def test_every_format_is_answered(model: Running) -> None:
    contents = [{"role": "user", "parts": [{"text": "Say hello."}]}]
    messages = model.post("/v1/messages?beta=true", model="m", messages=SAY)
    assert messages.json()["content"][0]["text"] == HELLO
    chat = model.post("/v1/chat/completions", model="m", messages=SAY)
    assert chat.json()["choices"][0]["message"]["content"] == HELLO
    responses = model.post("/v1/responses", model="m", input="Say hello.")
    assert responses.json()["output"][0]["content"][0]["text"] == HELLO
    gemini = model.post("/v1beta/models/m:generateContent", contents=contents)
    assert gemini.json()["candidates"][0]["content"]["parts"][0]["text"] == HELLO
    assert model.latest()["model"] == "m"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"model": "m", "messages": SAY, "stream": True}),
        ("/v1/chat/completions", {"model": "m", "messages": SAY, "stream": True}),
        ("/v1/responses", {"model": "m", "input": SAY, "stream": True}),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            {"contents": [{"parts": [{"text": "Say hello."}]}]},
        ),
    ],
)
def test_every_format_is_streamed(path: str, body: Any, model: Running) -> None:
    answer = model.post(path, **body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [
        dict(line.split(": ", 1) for line in one.split("\n"))
        for one in answer.text.split("\n\n")[:-1]
    ]
    assert all(event["data"] == "[DONE]" or json.loads(event["data"]) for event in events)
    assert "scripted " in answer.text


def test_a_turn_that_takes_its_time_has_begun_and_can_be_left(model: Running) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Think a bit then respond."}]}
    asked: Any = {"json": {**body, "stream": True}}
    with model.client.stream("POST", "/v1/chat/completions", **asked) as answer:
        lines = answer.iter_lines()
        while "Thinking" not in next(lines):
            pass
    assert model.latest()["text"].startswith("Thinking")
    assert model.client.get("/v1/models").json()["data"][0]["id"] == "scripted"


def test_tokens_are_counted(model: Running) -> None:
    body = {"model": "m", "messages": SAY}
    assert model.post("/v1/messages/count_tokens", **body).json() == {"input_tokens": 4}
    contents = [{"parts": [{"text": "Say hello."}]}]
    counted = model.post("/v1beta/models/m:countTokens", contents=contents)
    assert counted.json() == {"totalTokens": 3}


def test_the_log_says_what_was_asked_and_answered(model: Running) -> None:
    read: list[Any] = [{"role": "user", "content": "Read a.txt and tell me its contents."}]
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": schema}}]
    model.post("/v1/chat/completions", model="m", messages=read, tools=tools)
    line = model.latest()
    assert line["request"] == "POST /v1/chat/completions"
    assert (line["model"], line["stream"], line["status"]) == ("m", False, 200)
    assert (line["prompt"], line["tools"]) == (read[0]["content"], ["read_file"])
    assert (line["call"], line["arguments"]) == ("read_file", {"path": "./a.txt"})
    assert line["body"]["messages"] == read


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "problem"),
    [
        ("GET", "/", "", 404, "has no GET /; it has POST /v1/messages"),
        ("GET", "/v1/messages", "", 404, "has no GET /v1/messages; it has"),
        ("POST", "/v1beta/models/m:embedContent", "{}", 404, "has no POST /v1beta/models/m:embed"),
        ("POST", "/v1/messages", "{", 400, "the body: is not JSON"),
        ("POST", "/v1/messages", '{"model": "m"}', 400, "messages: required"),
        ("POST", "/v1/messages/count_tokens", "[]", 400, "the body: should be an object"),
        (
            "POST",
            "/v1/chat/completions",
            '{"model": "m", "messages": [{"role": "user", "content": 4}]}',
            400,
            "messages.0.content: should be a string or a list",
        ),
        ("POST", "/v1/responses", '{"model": "m"}', 400, "input: required"),
        (
            "POST",
            "/v1beta/models/m:countTokens",
            '{"contents": 1}',
            400,
            "contents: should be a list",
        ),
    ],
)
def test_what_it_does_not_understand_is_refused_and_logged(
    method: str, path: str, body: str, status: int, problem: str, model: Running
) -> None:
    answer = model.client.request(method, path, content=body)
    assert answer.status_code == status
    assert problem in answer.json()["error"]["message"]
    assert problem in model.latest()["refused"]


def test_who_takes_it_for_a_proxy_is_refused_and_named(model: Running) -> None:
    plain = model.client.get("/x", headers={"host": "api.example"})
    assert plain.status_code == 403
    assert (
        "not a proxy: it does not forward requests to api.example"
        in plain.json()["error"]["message"]
    )
    host, port = model.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as raw:
        raw.sendall(b"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 403 ")
    assert (model.latest()["host"], model.latest()["status"]) == ("api.example:443", 403)
