"""Compatibility plugins: other formats of a worker's result. Non-normative, off by default (§11).

A plugin is used only when the output has no TASK_RESULT_V2 block; a broken block stays an error.
"""

from schemas import wire
from schemas.task_result import Evidence, ResultStatus, TaskResult
from schemas.v2 import FailureClass
from schemas.wire_values import DONE
from threader.adapters.base import ResultReader
from threader.errors import ThreaderError
from threader.parsing import Buffer, ParsedContract, ParserErrorCode, ParserFailure, parse_result

MAX_READ = 1024 * 1024
"""Bytes at the end of the output in which a report is searched for."""

_STATUSES: dict[str, tuple[ResultStatus, FailureClass | None]] = {
    "ok": (ResultStatus.DONE, None),
    "no_changes": (ResultStatus.DONE, None),
    "fail": (ResultStatus.FAILED, FailureClass.PROMPT_GAP),
    "partial": (ResultStatus.FAILED, FailureClass.PROMPT_GAP),
    "decomposed": (ResultStatus.FAILED, FailureClass.PROMPT_GAP),
    "retry": (ResultStatus.FAILED, FailureClass.TRANSIENT_INFRA),
    "fixture_gap": (ResultStatus.FAILED, FailureClass.MISSING_PATHS),
    "needs_decision": (ResultStatus.BLOCKED, None),
    "rejected": (ResultStatus.BLOCKED, None),
}


def _result(report: wire.Report, task_id: str) -> TaskResult:
    undone = report.status in DONE and report.failing
    status, failure_class = _STATUSES["fail" if undone else report.status]
    summary = report.error or report.question or report.learned or f"STATUS:{report.status}"
    if undone:
        summary = report.error or f"STATUS:{report.status}, but {' and '.join(undone)} say fail"
    ran = {"tests": report.tests, "build": report.build}
    notes = [f"{name}: {value}" for name, value in ran.items() if value]
    return TaskResult(
        contract_version="2.0",
        task_id=task_id,
        status=status,
        summary=summary,
        changed_files=[*report.files_created, *report.files_modified, *report.files_deleted],
        evidence=Evidence(notes=notes),
        failure_class=failure_class,
    )


def read_wire(log: Buffer, task_id: str) -> ParsedContract[TaskResult] | ParserFailure:
    """A canonical result, else the last compact report (`STATUS:ok`), which names no task."""
    parsed = parse_result(log, task_id)
    if isinstance(parsed, ParsedContract) or parsed.code is not ParserErrorCode.NO_SENTINEL:
        return parsed
    text = log[max(0, len(log) - MAX_READ) : len(log)].decode("utf-8", "replace")
    try:
        reading = wire.parse_report(text)
    except wire.WireError as error:
        return ParserFailure(ParserErrorCode.SCHEMA_VIOLATION, f"compact report: {error}")
    if reading is None:
        return parsed
    warnings = [f"compact report: {warning}" for warning in reading.warnings]
    stood_in = "a compact report was read in place of the result block"
    return ParsedContract(_result(reading.message, task_id), (stood_in, *warnings))


PLUGINS: dict[str, ResultReader] = {"wire": read_wire}


def result_reader(compat: str | None) -> ResultReader:
    """The reader that `--compat` names; without it only the canonical contract is read."""
    if compat is None:
        return parse_result
    if compat not in PLUGINS:
        raise ThreaderError(f"--compat: {compat} should be one of {', '.join(PLUGINS)}")
    return PLUGINS[compat]
