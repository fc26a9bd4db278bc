"""The outgoing HTTP client, with the node's rules for where it may connect (design §6)."""

from collections.abc import Callable
from functools import partial

from peers.client import ANSWER_MAX, SECONDS, HttpClient
from peers.errors import CallError
from peers.versions import version_problem
from server.domain.endpoints import check_address, check_endpoint
from server.domain.errors import InvalidInput, Refusal
from server.util.duty import check_duty

CARD_SECONDS = 3.0
CARD_MAX = 1024 * 1024


def make_client(
    *,
    loopback_allowed: bool,
    private_allowed: bool = True,
    seconds: float = SECONDS,
    answer_max: int = ANSWER_MAX,
) -> HttpClient:
    """A client that connects to loopback and private networks only when allowed, and never to an
    address that `domain.endpoints` refuses; nor in the name of a duty that has lapsed, where it
    raises Unavailable. `seconds` and `answer_max` as in `Client`."""
    address = partial(
        check_address, loopback_allowed=loopback_allowed, private_allowed=private_allowed
    )
    return HttpClient(
        partial(_may_call, partial(check_endpoint, loopback_allowed=loopback_allowed)),
        partial(_problem, address),
        seconds=seconds,
        answer_max=answer_max,
    )


class CardCheck:
    """Refuses agents whose card names another major version of CACP (CACP 2.0, Versioning)."""

    def __init__(self, *, loopback_allowed: bool) -> None:
        self._client = make_client(
            loopback_allowed=loopback_allowed, seconds=CARD_SECONDS, answer_max=CARD_MAX
        )

    async def __call__(self, endpoint: str) -> None:
        """Raises InvalidInput. An agent without a card passes: its senders check again."""
        try:
            card = await self._client.get(f"{endpoint.rstrip('/')}/.well-known/agent.json")
        except CallError:
            return
        if problem := version_problem(card):
            raise InvalidInput(f"The agent at {endpoint} {problem}", reason="unsupported_version")

    async def close(self) -> None:
        await self._client.close()


def _may_call(check: Callable[[str], object], url: str) -> str | None:
    check_duty()
    return _problem(check, url)


def _problem(check: Callable[[str], object], value: str) -> str | None:
    try:
        check(value)
    except Refusal as refusal:
        return refusal.message
    return None
