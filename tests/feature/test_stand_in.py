"""The stand-in for a model's API, asked as an agent asks it."""

import json
from pathlib import Path

import httpx

from comply.model.conversation import ModelAnswer
from tests.feature.stand_in import StandIn


def test_a_model_answers_over_a_socket_and_its_log_has_the_request(tmp_path: Path) -> None:
    log = tmp_path / "model.jsonl"
    with StandIn(lambda request: ModelAnswer(request.turns[-1].text.upper()), log) as api:
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        answer = httpx.post(f"{api.url}/v1/chat/completions", json=body, trust_env=False)
    assert answer.json()["choices"][0]["message"]["content"] == "HELLO"
    (line,) = map(json.loads, log.read_text().splitlines())
    assert (line["body"], line["text"]) == (body, "HELLO")
