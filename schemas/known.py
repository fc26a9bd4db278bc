"""The handshake behind trust level "known" (CACP 2.0, Trust Levels).

The node's side of it is `server.discovery.known_agents`.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

from schemas.base import Endpoint, Identifier, Params, Result
from schemas.sync import PeerObject

CHALLENGE_PATH = "/.well-known/cacp-challenge/"

Nonce = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{32,128}$")]
"""Chosen by the caller for one request: 32 to 128 letters, digits, - and _."""


class KnownParams(Params):
    """Body of POST /known: the caller, and the nonce that its endpoint will confirm."""

    agent_id: Identifier
    nonce: Nonce


class KnownGrant(Result):
    """Response of POST /known: a key that may read, valid for `expiresIn` seconds."""

    key: str
    trust: Literal["known"] = "known"
    expires_in: int


class Challenge(PeerObject):
    """The response of the caller's endpoint for a nonce: the caller, and the node that it calls."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="ignore"
    )

    agent_id: Identifier
    node: Endpoint


class AskParams(Params):
    """Body of POST /adp/known: the node to call."""

    url: Endpoint
