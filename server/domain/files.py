"""Files and requests for them as facts: what a node knows of them is the union of what was signed
(design §7)."""

from typing import TypeVar

from schemas.file import FileFact, FileRequestFact
from server.domain.immutable import order

F = TypeVar("F", FileFact, FileRequestFact)


def winner(one: F, other: F) -> F:
    """Which of two facts of one id stays."""
    return min(one, other, key=lambda fact: order(fact.stamp, fact.model_dump()))
