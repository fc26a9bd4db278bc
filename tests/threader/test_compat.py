"""Compatibility plugins (agent-threader-v2 §11 "Legacy Variant Behavior")."""

import asyncio
from pathlib import Path

import pytest

from schemas.run_state import TaskStatus
from schemas.wire_values import STATUSES
from tests.threader.projects import Bench, result_block
from threader.compat import PLUGINS, read_wire, result_reader
from threader.errors import ThreaderError
from threader.parsing import ParsedContract, ParserFailure, parse_result


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_its_meaning(status: str) -> None:
    parsed = read_wire(f"work...\nSTATUS: {status}\nERROR: why\n".encode(), "A")
    assert isinstance(parsed, ParsedContract)
    done = status in ("ok", "no_changes")
    assert (parsed.value.status == "DONE") == done
    assert (parsed.value.task_id, parsed.value.summary) == ("A", "why")
    assert "in place of" in parsed.warnings[0]


def test_files_and_evidence() -> None:
    log = b"STATUS:ok\nFILES_CREATED:a.py,b.py\nFILES_DELETED:c.py\nTESTS:pass:12\nBUILD:pass\n"
    parsed = read_wire(log, "A")
    assert isinstance(parsed, ParsedContract)
    assert parsed.value.changed_files == ["a.py", "b.py", "c.py"]
    assert parsed.value.evidence.notes == ["tests: pass:12", "build: pass"]


def test_what_fails_its_tests_is_not_done() -> None:
    parsed = read_wire(b"STATUS:ok\nLEARNED:one\ntwo\nTESTS:fail:3\n", "A")
    assert isinstance(parsed, ParsedContract)
    assert (parsed.value.status, parsed.value.failure_class) == ("FAILED", "prompt_gap")
    assert parsed.value.summary == "STATUS:ok, but TESTS say fail"
    assert "compact report: line 4: TESTS says fail" in parsed.warnings[2]


def test_the_canonical_contract_comes_first() -> None:
    parsed = read_wire(result_block("A").encode() + b"STATUS:fail\n", "A")
    assert isinstance(parsed, ParsedContract)
    assert parsed.value.status == "DONE"
    broken = b"<<<TASK_RESULT_V2>>>\n{\n<<<END_TASK_RESULT_V2>>>\nSTATUS:ok\n"
    assert isinstance(read_wire(broken, "A"), ParserFailure)
    for log in (b"no report", b"STATUS:perhaps\n"):
        assert isinstance(read_wire(log, "A"), ParserFailure)


def test_off_by_default(tmp_path: Path) -> None:
    assert result_reader(None) is parse_result
    assert result_reader("wire") is PLUGINS["wire"]
    with pytest.raises(ThreaderError, match="xml should be one of wire"):
        result_reader("xml")
    for compat, status in ((None, TaskStatus.FAILED), ("wire", TaskStatus.DONE)):
        bench = Bench(tmp_path / str(compat), ["A"], healer=None)
        bench.answer("A", "STATUS:ok\n")
        opened = bench.open()
        opened.read_result = result_reader(compat)
        assert asyncio.run(opened.go()).tasks["A"].status is status
