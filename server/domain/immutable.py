"""Data that is written once: packets, files, file requests, contract headers (design §7).

An honest node uses no id twice. When one does, all nodes keep the same of the two.
"""

from typing import Any

from server.domain.canonical import canonical


def order(stamp: int, body: Any) -> tuple[int, bytes]:
    """A sort key: of two bodies with the same id, the smaller stays. The earlier stamp is smaller;
    equal stamps are ordered by the text."""
    return stamp, canonical(body)
