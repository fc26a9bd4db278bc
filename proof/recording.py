"""A recording of traffic: one JSON object in each line of a file."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.hidden_values import HIDDEN, HiddenValues
from proof.messages import Headers, WireAnswer, WireRequest
from proof.mock import Mocked

LINE_MAX = 64 * 2**20

Completions = Mapping[str, Mapping[str, str]]


class UnreadableRecording(ValueError):
    """A file that is no recording; in one line."""


class RecordedExchange(NamedTuple):
    """A request and its answer, when that was given, and the digest of the content that the mock
    went by: None for a request that was in no contract. `completions` are those that the mock knew
    of each contract with this content, by its id (`AgreedContract.completions`), None of one that
    asked no node; `breaches` what it found wrong."""

    request: WireRequest
    answer: WireAnswer
    at: datetime
    digest: str | None
    completions: Completions | None = None
    breaches: tuple[RuleBreach, ...] = ()


class Recorder:
    """Appends to a recording, without credentials: the usual ones, and those that the contracts
    name. Each line is written at once."""

    def __init__(self, path: Path, contracts: Sequence[AgreedContract] = ()) -> None:
        self._hidden = HiddenValues.of(contract.interface for contract in contracts)
        self._completions: dict[str, dict[str, Mapping[str, str]]] = {}
        for each in contracts:
            if each.contract_id is not None and each.completions is not None:
                same = self._completions.setdefault(each.digest, {})
                same[each.contract_id] = each.completions
        self._file: TextIO = path.open("a", encoding="utf-8")

    def close(self) -> None:
        self._file.close()

    def add(self, request: WireRequest, mocked: Mocked) -> None:
        contract = mocked.contract
        breaches = self._hidden.breaches(request, mocked.breaches)
        request, answer = self._hidden.request(request), self._hidden.answer(mocked.answer)
        # A refusal quotes the value that doesn't fit.
        body = answer.body if breaches == mocked.breaches else HIDDEN.encode()
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "contract": None
            if contract is None
            else {
                "id": contract.contract_id,
                "name": contract.name,
                "version": contract.version,
                "digest": contract.digest,
                "completions": self._completions.get(contract.digest),
            },
            "operation": mocked.operation,
            "request": {
                "method": request.method,
                "path": request.path,
                "query": request.query,
                "headers": request.headers,
                **_body(request.body),
            },
            "response": {
                "status": answer.status,
                "headers": answer.headers,
                **_body(body),
            },
            "breaches": [breach._asdict() for breach in breaches],
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
            None if contract is None else _completions(contract.get("completions")),
            tuple(
                RuleBreach(str(breach["rule"]), str(breach["where"]), str(breach["why"]))
                for breach in entry.get("breaches", ())
            ),
        )
    except (AttributeError, OverflowError, ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableRecording(
            f"line {number} is no exchange as `cacp mock --record` writes it"
        ) from None


def _completions(given: Any) -> Completions | None:
    if given is None:
        return None
    return {str(id): {str(k): str(v) for k, v in each.items()} for id, each in given.items()}


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
