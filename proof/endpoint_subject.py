"""An HTTP endpoint as it is tried."""

from typing import TYPE_CHECKING

from proof.cases import Requests
from proof.credentials import without_credentials
from proof.enumerated import Enumerated
from proof.exchange import OperationCheck, RuleBreach
from proof.learned import Learned
from proof.messages import Headers, WireAnswer, WireRequest, media_of
from proof.probe_subject import Spoiled
from proof.spoiling import invalid
from proof.unread import unread_answer, unread_schema

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


UNKNOWN_ID = frozenset({404, 409, 410})
"""Answers to an id that a probe can't know: nothing is there, or it is not as it must be."""


class EndpointSubject:
    """Tries an endpoint with what `requests` makes; `learned` takes what answers tell."""

    def __init__(self, check: OperationCheck, requests: Requests, learned: Learned) -> None:
        self._check, self._requests, self._learned = check, requests, learned
        self._enumerated = Enumerated(requests)
        self._seen: set[tuple[str, int, str]] = set()
        self._unread: dict[str, None] = {
            f"its request is unread: {why}.": None
            for schema in check.request.bodies.values()
            for why in unread_schema(check.interface, schema)
        }

    @property
    def key(self) -> str:
        return self._check.key

    @property
    def promises_success(self) -> bool:
        return any(name[0] in "123d" for name in self._check.responses)

    @property
    def may_need_credentials(self) -> bool:
        return bool(self._check.operation.security)

    @property
    def excused(self) -> frozenset[int]:
        return UNKNOWN_ID if "{" in self._check.operation.route else frozenset()

    def plain(self) -> WireRequest | None:
        return self._requests.plain()

    def valid(self) -> "SearchStrategy[WireRequest]":
        return self._requests.valid()

    def edges(self) -> list[WireRequest]:
        return self._enumerated.edges()

    def broken(self) -> list[Spoiled]:
        return self._enumerated.broken()

    def unbroken(self) -> list[str]:
        return self._enumerated.unbroken

    def without_credentials(self, sent: Headers) -> Headers | None:
        return without_credentials(self._check.interface, self._check.operation, sent)

    def invalid(self) -> "SearchStrategy[Spoiled] | None":
        return invalid(self._requests)

    def is_success(self, answer: WireAnswer) -> bool:
        declared = {str(answer.status), f"{answer.status // 100}XX"} & self._check.responses.keys()
        return 200 <= answer.status < 300 or (answer.status < 400 and bool(declared))

    def unread(self) -> list[str]:
        return list(self._unread)

    def may_be_busy(self, answer: WireAnswer) -> bool:
        return not self._is_error(answer)

    def learn(self, answer: WireAnswer) -> None:
        self._learned.learn(self._check, answer)

    def breaches(self, request: WireRequest, answer: WireAnswer) -> list[RuleBreach]:
        if self._is_error(answer):
            return [RuleBreach("server_error", "status", f"It is {answer.status}.")]
        return self._answer_breaches(answer, request.method)

    def refusal_breaches(self, spoiled: Spoiled, answer: WireAnswer) -> list[RuleBreach]:
        wrong = spoiled.wrong
        if self._is_error(answer):
            why = f"It is {answer.status}; right is 4XX, as the request is wrong in {wrong}"
            return [RuleBreach("server_error", "status", why)]
        if answer.status < 400:
            why = f"It is accepted with {answer.status}, but wrong: {wrong.why}"
            return [RuleBreach(f"accepts_{wrong.rule}", wrong.where, why)]
        if self._check.response_for(answer.status) is None:
            return []
        return self._answer_breaches(answer, spoiled.request.method)

    def _answer_breaches(self, answer: WireAnswer, method: str) -> list[RuleBreach]:
        seen = method, answer.status, media_of(answer.headers)
        if seen not in self._seen:
            self._seen.add(seen)
            self._unread |= dict.fromkeys(unread_answer(self._check, answer, method))
        return self._check.answer_breaches(answer, method)

    def _is_error(self, answer: WireAnswer) -> bool:
        """Whether it is an error of the server that the contract doesn't name."""
        declared = {str(answer.status), "5XX"} & self._check.responses.keys()
        return answer.status >= 500 and not declared
