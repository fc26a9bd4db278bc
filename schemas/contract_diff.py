"""cacp/contract/diff and cacp/contract/compare: two versions of a contract."""

from typing import Literal

from pydantic import Field

from schemas.base import Count, Identifier, JsonObject, Ordinal, Result, Text, Timestamp
from schemas.comparison import ContentComparison, VersionComparison
from schemas.contract import ContractParams
from schemas.dialect import DialectName

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


class DiffResult(ContentComparison):
    """`more_rows` counts what is left out."""

    contract_id: Identifier
    from_: DiffedVersion = Field(alias="from")
    to: DiffedVersion
    rows: list[ContentRow]
    more_rows: Count


class CompareParams(ContractParams):
    """`to` is the current version by default. With `content`, that is compared instead, as a next
    version would be: a content that nobody has proposed yet. `from` is the last version before it
    that was agreed, else the one before it."""

    from_: Ordinal | None = Field(default=None, alias="from")
    to: Ordinal | None = None
    content: JsonObject | None = None
    dialect: DialectName | None = None
    """What `content` is written in; that of the current version by default."""


class CompareResult(VersionComparison):
    """`version` is absent for a content that was given."""

    contract_id: Identifier
    dialect: DialectName
    version: Ordinal | None = None
