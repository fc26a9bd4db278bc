"""The parser (agent-threader-v2 §5 "Parser Error Handling", §7, §8 "Parser Authority")."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.heal_decision import HealDecision
from schemas.task_result import TaskResult
from tests.support.growth import grows_linearly
from threader.parsing import (
    EXPLANATIONS,
    HEAL_FENCE,
    ParsedContract,
    ParserErrorCode,
    ParserFailure,
    parse_decision,
    parse_result,
)


def body(**fields: Any) -> str:
    return json.dumps(
        {"contract_version": "2.0", "task_id": "A", "status": "DONE", "summary": "did it", **fields}
    )


def fenced(text: str, name: str = "TASK_RESULT_V2") -> bytes:
    return f"<<<{name}>>>\n{text}\n<<<END_{name}>>>\n".encode()


def result(log: bytes) -> ParsedContract[TaskResult]:
    parsed = parse_result(log, "A")
    assert isinstance(parsed, ParsedContract), parsed
    return parsed


def failure(log: bytes) -> ParserFailure:
    parsed = parse_result(log, "A")
    assert isinstance(parsed, ParserFailure), parsed
    return parsed


def test_valid_result_among_prose() -> None:
    parsed = result(b"thinking...\n" + fenced(body()) + b"bye\n")
    assert parsed.value.summary == "did it"
    assert parsed.warnings == ()


def test_one_line_and_crlf_are_accepted() -> None:
    assert result(b"<<<TASK_RESULT_V2>>>" + body().encode() + b"<<<END_TASK_RESULT_V2>>>")
    assert result(fenced(body()).replace(b"\n", b"\r\n"))


def test_the_last_block_wins_and_the_count_is_reported() -> None:
    log = fenced(body(summary="echoed draft")) + b"text\n" + fenced(body(summary="final"))
    parsed = result(log)
    assert parsed.value.summary == "final"
    assert "2 TASK_RESULT_V2 blocks" in parsed.warnings[0]


def test_a_block_cut_off_gives_way_to_the_next() -> None:
    assert result(b'<<<TASK_RESULT_V2>>>\n{"contr' + b"\n" + fenced(body())).value.task_id == "A"


def test_fences_inside_strings_are_content() -> None:
    text = "<<<END_TASK_RESULT_V2>>>\n<<<TASK_RESULT_V2>>>\n"
    write = {"path": "doc.md", "op": "create", "encoding": "utf8", "content": text}
    assert result(fenced(body(writes=[write]))).value.writes[0].content == text


def test_a_quoted_fence_in_prose_is_no_fence() -> None:
    log = b"end with <<<TASK_RESULT_V2>>>\n{}\n<<<END_TASK_RESULT_V2>>> please\n"
    assert failure(log).code is ParserErrorCode.NO_SENTINEL


@pytest.mark.parametrize(
    ("log", "code", "says"),
    [
        (b"no fence at all", "NO_SENTINEL", "no complete"),
        (b"", "NO_SENTINEL", "no complete"),
        (b"<<<TASK_RESULT_V2>>>\n{}", "NO_SENTINEL", "no complete"),
        (fenced("{not json}"), "INVALID_JSON", "line"),
        (fenced(body())[:24] + b'"\xff\xfe"\n<<<END_TASK_RESULT_V2>>>', "INVALID_JSON", "line"),
        (fenced("[1]"), "SCHEMA_VIOLATION", "object"),
        (fenced(body(status="MAYBE")), "SCHEMA_VIOLATION", "status"),
        (fenced(body(summary=3)), "SCHEMA_VIOLATION", "summary"),
        (fenced(body(task_id="B")), "SCHEMA_VIOLATION", "this task is 'A'"),
        (fenced('{"contract_version": "2.0"}'), "MISSING_REQUIRED_FIELD", "task_id"),
        (fenced("{}"), "MISSING_REQUIRED_FIELD", "contract_version"),
        (fenced(body(contract_version="3.0")), "UNSUPPORTED_VERSION", "2.0"),
        (
            fenced(body(writes=[{"path": "a", "op": "create", "encoding": "utf8"}])),
            "SCHEMA_VIOLATION",
            "content_ref",
        ),
        (
            fenced(body(writes=[{"path": "a", "op": "create", "content": "x"}])),
            "MISSING_REQUIRED_FIELD",
            "encoding",
        ),
        (fenced("[" * 100_000), "INVALID_JSON", "line"),
    ],
)
def test_errors_have_their_code_and_name_the_place(log: bytes, code: str, says: str) -> None:
    found = failure(log)
    assert found.code == code
    assert says in found.message
    assert found.code in EXPLANATIONS


def test_nearly_json_is_repaired_and_reported() -> None:
    text = '```json\n{"contract_version": "2.0", // v2\n "task_id": "A", "status": "DONE",\n'
    text += '"summary": "keeps // and ,] inside", /* list */ "changed_files": ["a",],}\n```'
    parsed = result(fenced(text))
    assert parsed.value.summary == "keeps // and ,] inside"
    assert parsed.warnings == ("the block's JSON was repaired",)


def test_decisions_have_their_own_fence() -> None:
    text = json.dumps(
        {
            "contract_version": "2.0",
            "scope": "batch",
            "decision": "RETRY",
            "failure_class": "prompt_gap",
            "root_cause": "x",
            "patches": [{"target": "runtime_patch", "operation": "merge", "content": {"a": 1}}],
        }
    )
    log = fenced(body()) + fenced(text, HEAL_FENCE.name)
    parsed = parse_decision(log)
    assert isinstance(parsed, ParsedContract)
    assert isinstance(parsed.value, HealDecision)
    missing = parse_decision(fenced(body()))
    assert isinstance(missing, ParserFailure)
    assert missing.code is ParserErrorCode.NO_SENTINEL


@given(st.binary(max_size=2000), st.binary(max_size=200))
def test_any_bytes_give_a_result_or_a_code(noise: bytes, inner: bytes) -> None:
    log = noise + b"\n<<<TASK_RESULT_V2>>>\n" + inner + b"\n<<<END_TASK_RESULT_V2>>>\n"
    assert isinstance(parse_result(log, "A"), ParsedContract | ParserFailure)


@given(st.text(min_size=1, max_size=300), st.lists(st.text(max_size=100), max_size=5))
def test_a_valid_block_is_found_in_any_text(summary: str, noise: list[str]) -> None:
    prose = "\n".join(noise).replace("TASK_RESULT_V2", "")
    log = prose.encode("utf-8", "replace") + b"\n" + fenced(body(summary=summary))
    assert result(log).value.summary == summary


@pytest.mark.soak
@pytest.mark.parametrize(
    "unit",
    [
        b"<<<TASK_RESULT_V2>>>\n",
        b"<<<END_TASK_RESULT_V2>>>\n",
        b"<<<TASK_RESULT_V2>>>\n<<<END_TASK_RESULT_V2>>>\n",
        b"<<<",
        b" ",
    ],
)
def test_hostile_logs_cost_linear_time(unit: bytes) -> None:
    """Up to 8 MB here."""

    def parse(size: int) -> None:
        assert isinstance(parse_result(unit * (size // len(unit)), "A"), ParserFailure)

    assert grows_linearly(parse, 1_000_000)


@pytest.mark.parametrize(
    "around",
    [
        ("\x1b[32m", "\x1b[0m"),
        ("\ufeff", ""),
        ("\x1b[1m\x1b[38;5;10m  ", "\x1b[0m\x1b[K"),
        ("\x1b]0;title\x07", ""),
    ],
)
def test_colours_and_marks_around_a_fence_hide_nothing(around: tuple[str, str]) -> None:
    before, after = around
    log = "".join(f"{before}{line}{after}\n" for line in fenced(body()).decode().splitlines())
    assert isinstance(parse_result(log.encode(), "A"), ParsedContract)
    prose = f"prose {before}<<<TASK_RESULT_V2>>>\n{{}}\n<<<END_TASK_RESULT_V2>>>\n"
    assert isinstance(parse_result(prose.encode(), "A"), ParserFailure)


def test_the_specifications_own_example_is_taken() -> None:
    item = {"path": "a", "op": "replace", "encoding": "utf8", "content": "x"}
    log = fenced(body(writes=[{**item, "sha256_before": "sha256:example"}]))
    parsed = parse_result(log, "A")
    assert isinstance(parsed, ParsedContract)
    assert parsed.warnings == ("a: sha256_before is not a digest, and was not checked",)
