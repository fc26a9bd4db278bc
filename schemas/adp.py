"""What is said to and by an ADP exchange (CACP 2.0, ADP Integration).

The specification shows two requests and no answer; the answers are those of the public exchange's
reference and of deployed clients. What others send is read tolerantly: unknown members are ignored,
null and "" mean absent. `to_wire` writes what we send.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from schemas.base import Endpoint, Identifier, Result, Text, Timestamp
from schemas.sync import PeerObject

PROTOCOL = "cacp"
PAGE_MAX = 100

Word = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Words = Annotated[list[Word], Field(max_length=50)]
Prose = Annotated[str, StringConstraints(max_length=2_000)]


class InvocationProtocol(PeerObject):
    """One way to call an agent. Only the `cacp` one need have an endpoint."""

    type: Word
    version: Word | None = None
    endpoint: Endpoint | None = None


class Invocation(PeerObject):
    protocols: Annotated[list[InvocationProtocol], Field(max_length=20)] = []


class Capability(PeerObject):
    """What an agent can do. A bare string is read as its id."""

    id: Identifier
    description: Prose = ""

    @model_validator(mode="before")
    @classmethod
    def _read_string(cls, value: Any) -> Any:
        return {"id": value} if isinstance(value, str) else value


class CacpMetadata(PeerObject):
    """`metadata.cacp`, as deployed clients write and read it."""

    repo: Identifier | None = None
    role: Word | None = None
    languages: Words = []
    supported_contract_types: Words = []


class Metadata(PeerObject):
    cacp: CacpMetadata = CacpMetadata()


class AdpManifest(PeerObject):
    """An agent as it describes itself to an exchange."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="ignore"
    )

    aid: Identifier
    name: Identifier
    description: Prose = ""
    capabilities: Annotated[list[Capability], Field(max_length=50)] = []
    invocation: Invocation = Invocation()
    metadata: Metadata = Metadata()
    updated_at: Timestamp | None = None

    @property
    def endpoint(self) -> str | None:
        """Where the agent speaks CACP; None when it doesn't."""
        protocols = self.invocation.protocols
        return next((known.endpoint for known in protocols if known.type == PROTOCOL), None)


class RegisterRequest(PeerObject):
    """Body of POST /v1/register/."""

    manifest: AdpManifest


class RegisterAnswer(Result):
    """`verified` says that the agent called with a key of its own."""

    success: Literal[True] = True
    message: Text
    aid: Identifier
    verified: bool


class Filters(PeerObject):
    """An agent passes when it speaks one of the protocols; all do when none is given."""

    protocols: Words = []


class SearchRequest(PeerObject):
    """Body of POST /v1/search/."""

    query: Prose = ""
    filters: Filters = Filters()
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 10
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class Listing(PeerObject):
    """An agent as an exchange lists it."""

    aid: Identifier
    name: Prose = ""
    description: Text = ""
    verified: StrictBool = False
    manifest: AdpManifest


class ListingPage(PeerObject):
    """Answer of POST /v1/search/ and GET /v1/agents/: `total` counts all that were found."""

    results: list[Listing]
    total: int
    limit: int
    offset: int


def to_wire(value: BaseModel) -> dict[str, Any]:
    """A model as JSON to send: members by their wire names, absent ones left out."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
