import json
import time
from pathlib import Path

import pytest

from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.messages import WireAnswer, WireRequest
from proof.mock import Mocked
from proof.recording import Recorder, UnreadableRecording, recorded

REQUEST = WireRequest(
    "POST",
    "/a",
    "b=1",
    (
        ("Authorization", "Bearer secret"),
        ("Cookie", "sid=secret"),
        ("X-API-Key", "secret"),
        ("X-Team", "blue"),
    ),
    b'{"a": 1}',
)
CONTRACT = AgreedContract("A", {"method": "POST", "path": "/a"}, None, "c1", 3)


def written(path: Path, *requests: WireRequest, contract: AgreedContract | None = CONTRACT) -> str:
    recorder = Recorder(path)
    for request in requests:
        answer = WireAnswer(200, (("Set-Cookie", "sid=secret"),), b"\xff")
        recorder.add(request, Mocked(answer, contract, "POST /a", (RuleBreach("r", "w", "Why."),)))
    recorder.close()
    return path.read_text()


def test_an_exchange_is_a_line_without_secrets(tmp_path: Path) -> None:
    text = written(tmp_path / "r.jsonl", REQUEST)
    assert "secret" not in text
    entry = json.loads(text)
    assert entry["contract"] == {"id": "c1", "name": "A", "version": 3, "digest": CONTRACT.digest}
    assert entry["request"]["headers"][0] == ["Authorization", "Bearer [hidden]"]
    assert entry["request"]["headers"][3] == ["X-Team", "blue"]
    assert entry["response"]["base64"] == "/w=="
    assert entry["breaches"] == [{"rule": "r", "where": "w", "why": "Why."}]


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    bare = WireRequest("GET", "/b")
    began = time.time() - 0.001  # the recording has milliseconds
    written(path, REQUEST)
    written(path, bare, contract=None)
    (first, answer, at, digest), (second, _, later, none) = recorded(path)
    assert (digest, none) == (CONTRACT.digest, None)
    assert began <= at.timestamp() <= later.timestamp() <= time.time()
    assert (first.method, first.target, first.body) == ("POST", "/a?b=1", b'{"a": 1}')
    assert answer == WireAnswer(200, (("Set-Cookie", "[hidden]"),), b"\xff")
    assert second == bare


NO_TIME = json.dumps(
    {
        "at": "soon",
        "contract": None,
        "request": {"method": "GET", "path": "/", "query": "", "headers": []},
        "response": {"status": 200, "headers": []},
    }
)


@pytest.mark.parametrize(
    "line", ["no", "[]", "{}", '{"request": 1, "response": 2}', "[" * 9999, NO_TIME]
)
def test_what_is_no_recording_is_said_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    written(path, REQUEST)
    with path.open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(UnreadableRecording, match="line 3 is no exchange"):
        list(recorded(path))
