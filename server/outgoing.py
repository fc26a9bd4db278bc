"""The outgoing client with the node's own rules (design §7)."""

from collections.abc import Callable
from functools import partial

from peers.client import ANSWER_MAX, SECONDS, Client
from server.domain.endpoints import check_address, check_endpoint
from server.domain.errors import Refusal


def make_client(
    *,
    loopback_allowed: bool,
    private_allowed: bool = True,
    seconds: float = SECONDS,
    answer_max: int = ANSWER_MAX,
) -> Client:
    """A client that calls loopback and private networks only when allowed, and never an address
    that `domain.endpoints` refuses. Limits as for `Client`."""
    address = partial(
        check_address, loopback_allowed=loopback_allowed, private_allowed=private_allowed
    )
    return Client(
        partial(_problem, partial(check_endpoint, loopback_allowed=loopback_allowed)),
        partial(_problem, address),
        seconds=seconds,
        answer_max=answer_max,
    )


def _problem(check: Callable[[str], object], value: str) -> str | None:
    try:
        check(value)
    except Refusal as refusal:
        return refusal.message
    return None
