import json
import time
from dataclasses import replace
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
    assert entry["contract"] == {
        "id": "c1",
        "name": "A",
        "version": 3,
        "digest": CONTRACT.digest,
        "completions": None,
    }
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
    (first, answer, at, digest, completions, breaches), rest = recorded(path)
    second, later, none = rest.request, rest.at, rest.digest
    assert (completions, breaches) == (None, (RuleBreach("r", "w", "Why."),))
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


def test_the_completions_of_contracts_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    contracts = [replace(CONTRACT, contract_id=id, completions={"r1": id}) for id in ("c1", "c2")]
    recorder = Recorder(path, contracts)
    mocked = Mocked(WireAnswer(200), contracts[0], "POST /a", ())
    recorder.add(REQUEST, mocked)
    recorder.close()
    (exchange,) = recorded(path)
    assert exchange.completions == {"c1": {"r1": "c1"}, "c2": {"r1": "c2"}}


def test_a_refusal_does_not_quote_a_credential(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorder = Recorder(path)
    breach = RuleBreach("header_schema", "header X-API-Key", '"secret" is too short')
    recorder.add(REQUEST, Mocked(WireAnswer(400, (), b"secret"), CONTRACT, "POST /a", (breach,)))
    recorder.close()
    assert "secret" not in path.read_text()
    (exchange,) = recorded(path)
    assert [each.where for each in exchange.breaches] == ["header X-API-Key"]
