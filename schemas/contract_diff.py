"""cacp/contract/diff: two versions of a contract beside each other."""

from typing import Literal

from pydantic import Field

from schemas.base import Count, Identifier, Ordinal, Result, Text, Timestamp
from schemas.contract import ContractParams

Effect = Literal["compatible", "breaking", "unknown"]
Verdict = Literal["same", "compatible", "breaking", "unknown"]
RowKind = Literal["equal", "changed", "removed", "added", "gap"]


class DiffParams(ContractParams):
    """`to` is the current version by default, `from` the one before it."""

    from_: Ordinal | None = Field(default=None, alias="from")
    to: Ordinal | None = None


class DiffedVersion(Result):
    """A version that is compared. `name` is the repo's; absent while unknown here."""

    version: Ordinal
    proposed_by: Identifier
    name: Identifier | None = None
    agent_id: Identifier
    timestamp: Timestamp
    change_note: Text | None = None


class ContentChange(Result):
    """A change at one JSON path, and what it means for each side: whether what is built to the
    older version still fits. `before` and `after` are JSON, cut if it is long."""

    path: str
    rule: str
    provider: Effect
    consumer: Effect
    before: str | None = None
    after: str | None = None
    why: str


class ContentPart(Result):
    """A part of a line; `changed` if the other version has another in its place."""

    text: str
    changed: bool


class ContentLine(Result):
    """A line of the content as JSON; `cut` counts the characters that are left out at its end."""

    number: Ordinal
    parts: list[ContentPart]
    cut: Count


class ContentRow(Result):
    """A row of both versions beside each other. A `gap` stands for `skipped` equal lines."""

    kind: RowKind
    before: ContentLine | None = None
    after: ContentLine | None = None
    skipped: Count


class DiffResult(Result):
    """The verdicts are those of all changes: breaking if one breaks, else unknown if one is
    unknown. `more_changes` and `more_rows` count what is left out."""

    contract_id: Identifier
    from_: DiffedVersion = Field(alias="from")
    to: DiffedVersion
    verdict: Verdict
    provider: Verdict
    consumer: Verdict
    changes: list[ContentChange]
    more_changes: Count
    rows: list[ContentRow]
    more_rows: Count
