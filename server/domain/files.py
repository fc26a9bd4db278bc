"""Files and requests for them as facts: what a node knows of them is the union of what was signed
(design §6)."""

from typing import TypeVar

import orjson

from schemas.file import FileFact, FileRequestFact

F = TypeVar("F", FileFact, FileRequestFact)


def winner(one: F, other: F) -> F:
    """Which of two facts of one id stays: the earlier; the text settles stamps that are equal.

    Honest nodes give no id twice. Where one does, all nodes come to the same.
    """
    return min(one, other, key=lambda fact: (fact.stamp, orjson.dumps(fact.model_dump())))
