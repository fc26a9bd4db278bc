"""A mock of agreed endpoints: refuses what breaks the contract, and answers as it promises."""

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from proof.agreed import AgreedContract, examples_beside
from proof.credentials import missing_credentials
from proof.exchange import OperationCheck, PartCheck, RuleBreach, ValueCheck
from proof.graphql_http import PATH, graphql_schema
from proof.graphql_mock import graphql_answer
from proof.messages import Headers, WireAnswer, WireRequest, fits_media, header_of, is_json
from proof.parameters import Unwritable, written
from proof.plain_values import plain_value
from proof.strategies import NoSuchValue
from schemas.plain import one_line

MOCK_HEADER = "X-CACP-Mock"
PROBLEM = "application/problem+json"
SHOWN_MAX = 200
GRAPHQL = "graphql"
"""What stands in the place of an operation's key for all of GraphQL."""
UNMOCKABLE = frozenset({"unmockable", "no_response"})
"""Rules by which the contract is at fault, and not the request."""
OVERSIZED = "oversized"
"""The rule of a body that is larger than a mock reads."""
ENDLESS = "Its schemas have so much in them that no value can be held against them"
_SUCCESS = ("200", "201", "202", "2XX")
_WITHOUT_BODY = (204, 304)


class Mocked(NamedTuple):
    """What a mock made of a request: its answer, the operation that it took it for, and what was
    wrong with it."""

    answer: WireAnswer
    contract: AgreedContract | None
    operation: str | None
    breaches: tuple[RuleBreach, ...]


class Served(NamedTuple):
    """An operation of a contract, and a path that stands before its route."""

    contract: AgreedContract
    base: str
    check: OperationCheck


class Mock:
    """Answers for the endpoints of some contracts. The same seed gives the same answers."""

    def __init__(self, contracts: list[AgreedContract], seed: int) -> None:
        self.contracts = contracts
        self.served = list(_served(contracts))
        schemas = [(contract, graphql_schema(contract)) for contract in contracts]
        self.graphql = [(contract, schema) for contract, schema in schemas if schema is not None]
        self.seed = seed
        self._values: dict[int, Any] = {}

    def doubled(self) -> list[str]:
        """Operations that several contracts have; the first of them answers."""
        first: dict[tuple[str, str], AgreedContract] = {}
        titles = [contract.title for contract, _ in self.graphql]
        lines = [f"{title} is not served: {titles[0]} has {PATH}" for title in titles[1:]]
        for contract, base, check in self.served:
            taken = first.setdefault((base, check.key), contract)
            if taken is not contract:
                line = f"{check.key} is in {taken.title} and in {contract.title}: the first answers"
                lines.append(line)
        return lines

    def unserved(self) -> list[str]:
        """Operations to which the mock has no answer, and why, in one line each."""
        each = {(s.contract.title, s.check.key): s for s in self.served if s.check.is_endless}
        return [f"{title}: {key} is not served. {ENDLESS}" for title, key in each]

    def answer(self, request: WireRequest) -> Mocked:
        """What the mock answers to a request."""
        if self.graphql and request.path == PATH and request.method in ("GET", "POST"):
            contract, schema = self.graphql[0]
            executed, breach = graphql_answer(schema, request)
            return Mocked(executed, contract, GRAPHQL, () if breach is None else (breach,))
        on_path = [served for served in self.served if _is_on(served, request.path)]
        method = "GET" if request.method == "HEAD" else request.method
        taken = next((s for s in on_path if s.check.operation.method == request.method), None)
        taken = taken or next((s for s in on_path if s.check.operation.method == method), None)
        if taken is None:
            return self._nowhere(request, on_path)
        contract, base, check = taken
        if check.is_endless:
            breaches = [RuleBreach("unmockable", "", f"{ENDLESS}.")]
            return self._refused(501, "It is not served", contract, check.key, breaches)
        lacking = missing_credentials(contract.interface, check.operation, request)
        if lacking is not None:
            breaches = [RuleBreach("credentials", "", lacking)]
            return self._refused(
                401, "The request lacks credentials", contract, check.key, breaches
            )
        breaches = check.request_breaches(request, request.path.removeprefix(base))
        if breaches:
            status = _refusal_status(check, breaches)
            title = "The request breaks the contract"
            return self._refused(status, title, contract, check.key, breaches)
        answer = self._made(request, contract, check)
        if isinstance(answer, RuleBreach):
            status = 501 if answer.rule in UNMOCKABLE else 400
            title = "The contract has no such answer"
            return self._refused(status, title, contract, check.key, [answer])
        return Mocked(answer, contract, check.key, ())

    def _nowhere(self, request: WireRequest, on_path: list[Served]) -> Mocked:
        where = f"{request.method} {one_line(request.path, SHOWN_MAX)}"
        if not on_path:
            breach = RuleBreach("unknown_path", "path", f"No agreed contract has {where}.")
            return self._refused(404, "There is no such endpoint", None, None, [breach])
        methods = sorted({served.check.operation.method for served in on_path})
        right = " or ".join(methods)
        breach = RuleBreach("unknown_method", "method", f"{where} is not agreed; right is {right}.")
        mocked = self._refused(405, "There is no such method", None, None, [breach])
        allow = (("Allow", ", ".join(methods)),)
        return mocked._replace(answer=_with(mocked.answer, allow))

    def _refused(
        self,
        status: int,
        title: str,
        contract: AgreedContract | None,
        operation: str | None,
        breaches: list[RuleBreach],
    ) -> Mocked:
        """A problem (RFC 9457) that says what is wrong."""
        problem = {
            "title": title,
            "status": status,
            "detail": "; ".join(map(str, breaches)),
            "operation": operation,
            "contract": None if contract is None else contract.title,
            "breaches": [breach._asdict() for breach in breaches],
        }
        answer = _json_answer(status, PROBLEM, problem)
        return Mocked(answer, contract, operation, tuple(breaches))

    # --- answers ----------------------------------------------------------------------------------

    def _made(
        self, request: WireRequest, contract: AgreedContract, check: OperationCheck
    ) -> WireAnswer | RuleBreach:
        wishes = preferences(request.headers)
        chosen = _status_of(check, wishes.get("code"))
        if isinstance(chosen, RuleBreach):
            return chosen
        status, name, part = chosen
        try:
            headers = self._headers(check, name, part)
            if not part.bodies or status in _WITHOUT_BODY:
                return WireAnswer(status, headers)
            media = _acceptable(part, header_of(request.headers, "accept"))
            if media is None:
                return RuleBreach(
                    "not_acceptable", "header Accept", f"It is {' or '.join(part.bodies)}."
                )
            value = self._body(contract, check, name, media, part, wishes.get("example"))
        except NoSuchValue:
            return RuleBreach("unmockable", "", f"No value fits the schema of the response {name}.")
        if isinstance(value, RuleBreach):
            return value
        answer = _body_answer(status, media, value)
        return _with(answer, headers)

    def _body(
        self,
        contract: AgreedContract,
        check: OperationCheck,
        status: str,
        media: str,
        part: PartCheck,
        wish: str | None,
    ) -> Any:
        schema = part.bodies[media]
        examples = examples_beside(contract.interface, schema.located)
        if wish is not None:
            if wish not in examples:
                right = ", ".join(examples) or "none"
                why = f"There is no example {one_line(wish, SHOWN_MAX)}; there are: {right}."
                return RuleBreach("unknown_example", "header Prefer", why)
            return examples[wish]
        sound = (value for value in examples.values() if schema.validator.accepts(value))
        for value in sound:
            return value
        return self._value(check, status, media, schema)

    def _headers(self, check: OperationCheck, status: str, part: PartCheck) -> Headers:
        headers: list[tuple[str, str]] = []
        for parameter, schema in part.parameters:
            value = self._value(check, status, f"header {parameter.name}", schema)
            try:
                headers += written(parameter, value)
            except Unwritable:
                if parameter.required:
                    raise NoSuchValue from None
        return tuple((name, "".join(c for c in text if " " <= c <= "~")) for name, text in headers)

    def _value(self, check: OperationCheck, status: str, what: str, schema: ValueCheck) -> Any:
        if id(schema) not in self._values:
            seed = zlib.crc32(f"{self.seed} {check.key} {status} {what}".encode())
            self._values[id(schema)] = plain_value(schema.schema, seed)
        return self._values[id(schema)]


def _served(contracts: list[AgreedContract]) -> Iterator[Served]:
    for contract in contracts:
        for check in contract.operations:
            for base in contract.interface.servers or ("",):
                yield Served(contract, base, check)


def _is_on(served: Served, path: str) -> bool:
    return path.startswith(served.base) and served.check.matches(path.removeprefix(served.base))


def preferences(headers: Headers) -> Mapping[str, str]:
    """The preferences of a request (RFC 7240): `code=404, example=none`."""
    given = header_of(headers, "prefer") or ""
    parts = (part.strip().partition("=") for part in given.replace(";", ",").split(","))
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in parts if name}


def _status_of(check: OperationCheck, wish: str | None) -> tuple[int, str, PartCheck] | RuleBreach:
    """The status to answer, the name that it is declared by, and its response."""
    declared = list(check.responses)
    right = ", ".join(declared) or "none"
    if wish is None:
        names = [name for name in _SUCCESS if name in declared]
        names += sorted(name for name in declared if name.startswith("2"))
        name = next(iter([*names, *(n for n in ("default",) if n in declared), *declared]), None)
        if name is None:
            return RuleBreach("no_response", "", "The contract says nothing of its answers.")
        status = 200 if name == "default" else int(name.replace("XX", "00"))
        return status, name, check.responses[name]
    status = int(wish) if len(wish) == 3 and wish.isascii() and wish.isdecimal() else 0
    found_response = check.response_for(status) if status else None
    if found_response is None:
        why = f"The answer {one_line(wish, SHOWN_MAX)} is not declared; there are: {right}."
        return RuleBreach("undeclared_status", "header Prefer", why)
    return status, *found_response


def _refusal_status(check: OperationCheck, breaches: list[RuleBreach]) -> int:
    """The status for what is wrong, as the contract would answer it."""
    if any(breach.rule == "media_type" for breach in breaches):
        return 415
    return 422 if "422" in check.responses and "400" not in check.responses else 400


def _acceptable(part: PartCheck, accept: str | None) -> str | None:
    """The media type to answer: one of JSON if the request takes it."""
    ranked = sorted(part.bodies, key=lambda media: not is_json(media))
    if accept is None:
        return ranked[0]
    ranges = [given.partition(";")[0].strip().lower() for given in accept.split(",")]
    fitting = (m for m in ranked if "*" in m or fits_media(m.partition(";")[0], ranges))
    return next(fitting, None)


def _body_answer(status: int, media: str, value: Any) -> WireAnswer:
    if is_json(media) or "*" in media:
        return _json_answer(status, media if "*" not in media else "application/json", value)
    text = value if isinstance(value, str) else json.dumps(value)
    return WireAnswer(status, (("Content-Type", media),), text.encode(errors="replace"))


def _json_answer(status: int, media: str, value: Any) -> WireAnswer:
    return WireAnswer(status, (("Content-Type", media),), json.dumps(value).encode())


def _with(answer: WireAnswer, headers: Headers) -> WireAnswer:
    return WireAnswer(answer.status, (*answer.headers, *headers), answer.body)
