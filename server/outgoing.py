"""Outgoing calls by this node's rules on addresses (design §7)."""

from collections.abc import Callable

from peers.outgoing import Outgoing
from server.domain.endpoints import check_address, check_endpoint
from server.domain.errors import Refusal


def outgoing(loopback: bool) -> Outgoing:
    """A client that calls loopback only while the node itself listens on loopback."""

    def checked(check: Callable[..., object]) -> Callable[[str], None]:
        def ask(value: str) -> None:
            try:
                check(value, loopback_allowed=loopback)
            except Refusal as refusal:
                raise ValueError(refusal.message) from None

        return ask

    return Outgoing(checked(check_endpoint), checked(check_address))
