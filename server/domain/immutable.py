"""What is written once: a packet, a file, a request for one, what a contract is (design §7).

Honest nodes give no id twice. Where one does, all nodes come to the same.
"""

from typing import Any

from server.domain.canonical import canonical


def order(stamp: int, body: Any) -> tuple[int, bytes]:
    """Of two things with one id that stays whose order is smaller: the earlier; the text settles
    stamps that are equal."""
    return stamp, canonical(body)
