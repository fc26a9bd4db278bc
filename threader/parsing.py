"""The only reader of worker and healer contracts (agent-threader-v2 §5, §8 "Parser Authority").

Works on bytes, in time linear in their length, and ignores prose: a contract is the last complete
fenced block of its type. A fence is alone on its line, so a fence quoted inside a JSON string is
content.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from schemas.heal_decision import HealDecision
from schemas.problems import problem_text
from schemas.task_result import TaskResult
from schemas.v2 import VERSION
from threader.repair import repair
from threader.signatures import strip_ansi

MAX_BLOCK = 64 * 1024 * 1024
MARGIN = 200
"""Bytes beside a fence within which its line must begin and end."""


class ParserErrorCode(StrEnum):
    NO_SENTINEL = "NO_SENTINEL"
    INVALID_JSON = "INVALID_JSON"
    SCHEMA_VIOLATION = "SCHEMA_VIOLATION"
    MISSING_REQUIRED_FIELD = "MISSING_REQUIRED_FIELD"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"


EXPLANATIONS: dict[str, str] = {
    "NO_SENTINEL": "The output has no complete fenced block of the contract. Emit exactly one, "
    "with each fence on a line of its own.",
    "INVALID_JSON": "The block is not JSON, even after outer Markdown fences, comments and "
    "trailing commas were removed. Escape line breaks inside strings as \\n.",
    "SCHEMA_VIOLATION": "The block is JSON, but a field has the wrong type or value, or task_id "
    "names another task. The message names the path.",
    "MISSING_REQUIRED_FIELD": "The block lacks a field that the contract demands.",
    "UNSUPPORTED_VERSION": f'contract_version is not "{VERSION}", the only one supported.',
}


@dataclass(frozen=True)
class ParserFailure:
    code: ParserErrorCode
    message: str

    @property
    def signal(self) -> str:
        """The stable part, for the failure signature (§10)."""
        return self.code.value.lower()


Contract = TypeVar("Contract", bound=BaseModel)


@dataclass(frozen=True)
class ParsedContract(Generic[Contract]):
    value: Contract
    warnings: tuple[str, ...] = ()


class Buffer(Protocol):
    """The common interface of `bytes` and `mmap`."""

    def find(self, sub: bytes, start: int = ..., end: int = ..., /) -> int: ...
    def rfind(self, sub: bytes, start: int = ..., end: int = ..., /) -> int: ...
    def __getitem__(self, index: slice, /) -> bytes: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Fence:
    name: str

    @property
    def opening(self) -> bytes:
        return f"<<<{self.name}>>>".encode()

    @property
    def closing(self) -> bytes:
        return f"<<<END_{self.name}>>>".encode()


RESULT_FENCE = Fence("TASK_RESULT_V2")
HEAL_FENCE = Fence("HEAL_DECISION_V2")


def _is_blank(line: bytes) -> bool:
    """Whether the rest of a fence's line shows nothing; colours and byte order marks don't show."""
    if not (rest := line.strip(b" \t\r`")):
        return True
    if b"\x1b" not in rest and b"\xef\xbb\xbf" not in rest:
        return False
    return not strip_ansi(line.decode("utf-8", "replace")).strip(" \t\r`\ufeff")


def _opens_line(log: Buffer, at: int) -> bool:
    before = log[max(0, at - MARGIN) : at]
    line = before.rpartition(b"\n")[2]
    return len(line) < MARGIN and _is_blank(line)


def _closes_line(log: Buffer, end: int) -> bool:
    line = log[end : end + MARGIN].partition(b"\n")[0]
    return len(line) < MARGIN and _is_blank(line)


def _positions(log: Buffer, fence: bytes) -> Iterator[int]:
    at = log.find(fence, 0)
    while at >= 0:
        yield at
        at = log.find(fence, at + len(fence))


def blocks(log: Buffer, fence: Fence) -> Iterator[tuple[int, int]]:
    """Start and end of each complete block's body, in order.

    A second opening before the closing restarts the block: the first one was cut off.
    """
    openings = (
        at + len(fence.opening) for at in _positions(log, fence.opening) if _opens_line(log, at)
    )
    following = next(openings, None)
    for end in _positions(log, fence.closing):
        if not _closes_line(log, end + len(fence.closing)):
            continue
        start = None
        while following is not None and following <= end:
            start, following = following, next(openings, None)
        if start is not None:
            yield start, end


def last_block(log: Buffer, fence: Fence) -> tuple[bytes | None, int]:
    """The body of the last complete block, and how many there are."""
    count = 0
    last: tuple[int, int] | None = None
    for last in blocks(log, fence):  # noqa: B007  the last one is wanted
        count += 1
    if last is None:
        return None, 0
    return log[last[0] : min(last[1], last[0] + MAX_BLOCK + 1)], count


def _load(body: bytes) -> tuple[object, bool] | ParserFailure:
    """The JSON value of `body` and whether it needed repair."""
    if len(body) > MAX_BLOCK:
        return ParserFailure(
            ParserErrorCode.INVALID_JSON, f"the block is larger than {MAX_BLOCK >> 20} MiB"
        )
    try:
        return orjson.loads(body), False
    except orjson.JSONDecodeError as error:
        first = error
    if b"\x1b" in body or body.lstrip().startswith(b"\xef\xbb\xbf"):
        body = strip_ansi(body.decode("utf-8", "replace")).strip("\ufeff \r\n").encode()
    try:
        return orjson.loads(repair(body)), True
    except orjson.JSONDecodeError:
        where = f"line {first.lineno} column {first.colno}"
        return ParserFailure(ParserErrorCode.INVALID_JSON, f"{where} of the block: {first.msg}")


def _describe(error: ValidationError) -> ParserFailure:
    problems = error.errors(include_url=False, include_input=False)
    parts = [problem_text(item, "block") for item in problems]
    missing = any(item["type"] == "missing" for item in problems)
    code = ParserErrorCode.MISSING_REQUIRED_FIELD if missing else ParserErrorCode.SCHEMA_VIOLATION
    more = f" (and {len(parts) - 5} more)" if len(parts) > 5 else ""
    return ParserFailure(code, "; ".join(parts[:5]) + more)


def _validate(value: object, model: type[Contract]) -> Contract | ParserFailure:
    if not isinstance(value, dict):
        return ParserFailure(ParserErrorCode.SCHEMA_VIOLATION, "the block must be a JSON object")
    if "contract_version" not in value:
        return ParserFailure(
            ParserErrorCode.MISSING_REQUIRED_FIELD, f'contract_version: must be "{VERSION}"'
        )
    if value["contract_version"] != VERSION:
        return ParserFailure(
            ParserErrorCode.UNSUPPORTED_VERSION,
            f'contract_version is {value["contract_version"]!r:.40}; must be "{VERSION}"',
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        return _describe(error)


def _parse(
    log: Buffer, fence: Fence, model: type[Contract]
) -> ParsedContract[Contract] | ParserFailure:
    body, count = last_block(log, fence)
    if body is None:
        return ParserFailure(
            ParserErrorCode.NO_SENTINEL, f"no complete {fence.name} block in the output"
        )
    loaded = _load(body)
    if isinstance(loaded, ParserFailure):
        return loaded
    value, repaired = loaded
    checked = _validate(value, model)
    if isinstance(checked, ParserFailure):
        return checked
    warnings = []
    if count > 1:
        warnings.append(f"{count} {fence.name} blocks instead of one; the last one counts")
    if repaired:
        warnings.append("the block's JSON was repaired")
    return ParsedContract(checked, tuple(warnings))


def parse_result(log: Buffer, task_id: str) -> ParsedContract[TaskResult] | ParserFailure:
    """The worker's result for `task_id`, from its whole output (§7)."""
    parsed = _parse(log, RESULT_FENCE, TaskResult)
    if isinstance(parsed, ParserFailure):
        return parsed
    if parsed.value.task_id != task_id:
        return ParserFailure(
            ParserErrorCode.SCHEMA_VIOLATION,
            f"task_id: is {parsed.value.task_id!r:.120}; this task is {task_id!r}",
        )
    unchecked = [
        f"{write.path}: sha256_before is not a digest, and was not checked"
        for write in parsed.value.writes
        if write.sha256_before and write.expected is None
    ]
    return ParsedContract(parsed.value, (*parsed.warnings, *unchecked))


def parse_decision(log: Buffer) -> ParsedContract[HealDecision] | ParserFailure:
    """The healer's decision, from its whole output (§7)."""
    return _parse(log, HEAL_FENCE, HealDecision)
