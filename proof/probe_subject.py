"""What a trial tries: requests to one operation, and what their answers must be."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from proof.exchange import RuleBreach
from proof.messages import Headers, WireAnswer, WireRequest

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Spoiled(NamedTuple):
    """A request that breaks the contract, and what is wrong with it."""

    request: WireRequest
    wrong: RuleBreach


class ProbeSubject(Protocol):
    """One operation of a contract as it is tried."""

    @property
    def key(self) -> str: ...

    @property
    def promises_success(self) -> bool:
        """Whether the contract has an answer of success, so that one must be seen."""
        ...

    @property
    def may_need_credentials(self) -> bool:
        """Whether the contract says so, so that a refusal for want of them is no breach."""
        ...

    @property
    def excused(self) -> frozenset[int]:
        """Statuses of answers that tell nothing of whether valid requests have success."""
        ...

    def plain(self) -> WireRequest | None:
        """The likeliest request to have success; None if it would break the contract."""
        ...

    def edges(self) -> list[WireRequest]:
        """Requests that keep the contract, each with one value at an edge of what is valid."""
        ...

    def valid(self) -> "SearchStrategy[WireRequest]":
        """Requests that keep the contract."""
        ...

    def broken(self) -> list[Spoiled]:
        """Requests that break it, one for each of its constraints."""
        ...

    def unbroken(self) -> list[str]:
        """The constraints that no request could break, once `broken` was called."""
        ...

    def without_credentials(self, sent: Headers) -> Headers | None:
        """What of the headers that go along is no credential; None if the operation asks for no
        credentials that are among them."""
        ...

    def invalid(self) -> "SearchStrategy[Spoiled] | None":
        """Requests that break it; None if none can."""
        ...

    def is_success(self, answer: WireAnswer) -> bool: ...

    def may_be_busy(self, answer: WireAnswer) -> bool:
        """Whether an answer that asks to wait is none of an error."""
        ...

    def learn(self, answer: WireAnswer) -> None:
        """Take what later requests need from an answer of success."""
        ...

    def breaches(self, request: WireRequest, answer: WireAnswer) -> list[RuleBreach]:
        """What is wrong with the answer to a valid request."""
        ...

    def unread(self) -> list[str]:
        """What of the contract could not be held against the answers until now, a line each."""
        ...

    def refusal_breaches(self, spoiled: Spoiled, answer: WireAnswer) -> list[RuleBreach]:
        """What is wrong with the answer to an invalid one."""
        ...
