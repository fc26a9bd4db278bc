import json
from pathlib import Path
from typing import Any

from proof.agreed import AgreedContract
from proof.probe_outcome import ProbeOutcome
from proof.samples import (
    CommandEnd,
    Sample,
    check_samples,
    failed_command,
    feed,
    lines_of,
    messages_of,
    samples_in,
)

MODEL = AgreedContract("User", {"email": "string", "age": "integer?"}, "data_model")
ENDPOINT = AgreedContract("A", {"method": "GET", "path": "/a", "response": {}})


def checked(*texts: bytes, contract: AgreedContract = MODEL) -> ProbeOutcome:
    return check_samples(contract, [Sample(f"{n}.json", text) for n, text in enumerate(texts)])


def test_samples_that_fit_pass() -> None:
    outcome = checked(b'{"email": "a"}', b'{"email": "b", "age": 3}')
    assert (outcome.result, outcome.cases) == ("passed", 2)
    assert list(messages_of(MODEL)) == ["model"]


def test_samples_that_do_not_fit_are_named() -> None:
    outcome = checked(b'{"email": "a"}', b'{"email": 1}', b"no")
    assert outcome.result == "failed"
    assert [failure.why for failure in outcome.failures] == [
        '1.json, at /email: 1 is not of type "string"',
        "2.json: it is no JSON: Expecting value at character 0",
    ]


def test_without_a_sample_nothing_is_proven() -> None:
    assert checked().unproven == ("There is no sample of model.",)
    outcome = checked(b"{}", contract=ENDPOINT)
    assert (outcome.result, outcome.skipped) == ("not_run", ("GET /a",))
    assert outcome.unproven == ("The contract has no event or data model that its provider makes.",)


def asyncapi(*actions: str) -> AgreedContract:
    """A message for each of AsyncAPI's actions, which has a member of the action's name."""
    return AgreedContract(
        "Events",
        {
            "asyncapi": "3.0.0",
            "channels": {
                action: {
                    "address": action,
                    "messages": {"M": {"payload": {"type": "object", "required": [action]}}},
                }
                for action in actions
            },
            "operations": {
                action: {"action": action, "channel": {"$ref": f"#/channels/{action}"}}
                for action in actions
            },
        },
        "event_schema",
    )


def test_a_provider_makes_samples_of_what_it_sends() -> None:
    both = asyncapi("send", "receive")
    assert checked(b'{"send": 1}', contract=both).result == "passed"
    assert checked(b'{"send": 1}', b'{"receive": 1}', contract=both).result == "failed"
    assert "that its provider makes" in checked(b"{}", contract=asyncapi("receive")).unproven[0]


def test_samples_are_files_and_lines(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.json").write_text('{"email": "a"}')
    (tmp_path / "b.jsonl").write_text('{"email": "b"}\n\n{"email": "c"}\n')
    (tmp_path / "notes.txt").write_text("no sample")
    assert [sample.name for sample in samples_in(tmp_path)] == [
        "b.jsonl, line 1",
        "b.jsonl, line 3",
        "deep/a.json",
    ]
    assert list(lines_of("output", b"")) == []


def test_a_command_that_fails_has_failed_whatever_it_printed() -> None:
    outcome = checked(b'{"email": "a"}')
    failure = failed_command(outcome, CommandEnd(3, "boom"))
    assert (failure.operation, failure.rule) == ("model", "command_failed")
    assert failure.why == "It ended with status 3: boom"


def fed(accepts: Any, cases: int = 40) -> tuple[ProbeOutcome, int]:
    runs = []

    def run(given: bytes) -> CommandEnd:
        values = [json.loads(line) for line in given.splitlines()]
        runs.append(values)
        return CommandEnd(0, "") if accepts(values) else CommandEnd(1, "refused")

    return feed(MODEL, run, "read", cases, 3), len(runs)


def test_a_consumer_is_given_messages() -> None:
    outcome, runs = fed(lambda values: all(isinstance(v["email"], str) for v in values))
    assert (outcome.result, outcome.cases, outcome.seed, runs) == ("passed", 40, 3, 1)


def test_the_message_that_a_consumer_refuses_is_found() -> None:
    outcome, runs = fed(lambda values: all("age" in value for value in values))
    (failure,) = outcome.failures
    assert failure.rule == "message_refused"
    assert '"age"' not in failure.reproduce
    assert failure.reproduce.startswith("printf '%s' ")
    assert failure.reproduce.endswith(" | read")
    assert runs < 12


def test_messages_that_fail_only_together_are_given_together() -> None:
    outcome, _ = fed(lambda values: len(values) < 5)
    (failure,) = outcome.failures
    assert failure.reproduce.count('"email"') == 5


def test_a_schema_without_values_is_said() -> None:
    contract = AgreedContract("None", {"type": "string", "not": {}})
    outcome = feed(contract, lambda _: CommandEnd(0, ""), "read", 5, 1)
    assert outcome.unproven == ("model: no value fits its schema.",)
