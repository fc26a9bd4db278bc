"""A recording of traffic: one JSON object in each line of a file."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from proof.messages import Headers, WireAnswer, WireRequest
from proof.mock import Mocked

SECRET = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"}
)
"""Headers whose values are not recorded; of an authorization its scheme is."""
HIDDEN = "[hidden]"
LINE_MAX = 64 * 2**20


class UnreadableRecording(ValueError):
    """A file that is no recording; in one line."""


class RecordedExchange(NamedTuple):
    """A request and its answer, when that was given, and the digest of the content that the mock
    went by: None for a request that was in no contract."""

    request: WireRequest
    answer: WireAnswer
    at: datetime
    digest: str | None


class Recorder:
    """Appends to a recording. Each line is written at once."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")

    def close(self) -> None:
        self._file.close()

    def add(self, request: WireRequest, mocked: Mocked) -> None:
        contract = mocked.contract
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "contract": None
            if contract is None
            else {
                "id": contract.contract_id,
                "name": contract.name,
                "version": contract.version,
                "digest": contract.digest,
            },
            "operation": mocked.operation,
            "request": {
                "method": request.method,
                "path": request.path,
                "query": request.query,
                "headers": _shown(request.headers),
                **_body(request.body),
            },
            "response": {
                "status": mocked.answer.status,
                "headers": _shown(mocked.answer.headers),
                **_body(mocked.answer.body),
            },
            "breaches": [breach._asdict() for breach in mocked.breaches],
        }
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()


def recorded(path: Path) -> Iterator[RecordedExchange]:
    """The exchanges of a recording. Raises `UnreadableRecording`, and OSError."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        number = 0
        while line := lines.readline(LINE_MAX):
            number += 1
            if line.strip():
                yield _read(line, number)


def _read(line: str, number: int) -> RecordedExchange:
    try:
        entry = json.loads(line)
        request, response, contract = entry["request"], entry["response"], entry["contract"]
        return RecordedExchange(
            WireRequest(
                str(request["method"]),
                str(request["path"]),
                str(request["query"]),
                _headers(request["headers"]),
                _bytes(request),
            ),
            WireAnswer(
                int(response["status"]), _headers(response["headers"]), _bytes(response) or b""
            ),
            datetime.fromisoformat(entry["at"]).astimezone(UTC),
            None if contract is None else str(contract["digest"]),
        )
    except (OverflowError, ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableRecording(
            f"line {number} is no exchange as `cacp mock --record` writes it"
        ) from None


def _shown(headers: Headers) -> list[list[str]]:
    return [[name, _hidden(name, value)] for name, value in headers]


def _hidden(name: str, value: str) -> str:
    if name.lower() not in SECRET:
        return value
    scheme, space, _ = value.partition(" ")
    named = name.lower().endswith("authorization") and space
    return f"{scheme} {HIDDEN}" if named else HIDDEN


def _body(body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _headers(given: Any) -> Headers:
    return tuple((str(name), str(value)) for name, value in given)


def _bytes(message: dict[str, Any]) -> bytes | None:
    if "base64" in message:
        return base64.b64decode(message["base64"])
    return str(message["body"]).encode() if "body" in message else None
