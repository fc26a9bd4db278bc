"""Files and file requests as facts: a node knows the union of what was signed (design §7)."""

from typing import TypeVar

from schemas.file import FileFact, FileRequestFact
from server.domain.immutable import order

F = TypeVar("F", FileFact, FileRequestFact)


def winner(first: F, second: F) -> F:
    """The one of two facts with the same id that stays."""
    return min(first, second, key=lambda fact: order(fact.stamp, fact.model_dump()))
