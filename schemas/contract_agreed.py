"""cacp/contract/agreed: what holds between the repos of a project."""

from typing import Annotated

from pydantic import Field

from schemas.base import Identifier, JsonObject, Ordinal, Params, Result
from schemas.contract import ContractStatus, ContractType
from schemas.dialect import DialectName
from schemas.facts import Digest
from schemas.verification import PartyRole


class AgreedParams(Params):
    project_id: Identifier
    limit: Annotated[int, Field(ge=1, le=50)] = 50
    """Contracts that are looked at for one page, agreed or not."""
    cursor: Identifier | None = None


class AgreedParty(Result):
    """A repo that an agreed version binds. `name` is absent while the repo is unknown here."""

    repo_id: Identifier
    name: Identifier | None = None
    side: PartyRole


class AgreedVersion(Result):
    """The last version of a contract that was agreed. A later one may be in negotiation: then
    `current_version` is above `version`, and `status` is its."""

    contract_id: Identifier
    type: ContractType
    name: Identifier
    version: Ordinal
    digest: Digest
    """Of the content: what receipts are of."""
    dialect: DialectName | None = None
    """What the content was declared to be written in; absent where it is recognised."""
    content: JsonObject
    parties: list[AgreedParty]
    current_version: Ordinal
    status: ContractStatus


class AgreedResult(Result):
    """`next_cursor` is there if there may be more, even where a page is empty."""

    contracts: list[AgreedVersion]
    next_cursor: Identifier | None = None
