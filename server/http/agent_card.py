"""The agent card (CACP 2.0, GET /.well-known/agent.json), and the ADP manifest made of it."""

from importlib.metadata import version
from typing import Any, Literal, get_args

from schemas.adp import (
    PROTOCOL,
    CacpMetadata,
    Capability,
    Invocation,
    InvocationProtocol,
    Manifest,
    Metadata,
)
from schemas.context import ContextType
from schemas.contract import ContractType
from schemas.mesh import MESH_VERSION
from server.settings import Settings

CACP = "2.0"
VERSION = version("cacp-server")
"""This software's. To look it up takes longer than most answers."""


def card(settings: Settings) -> dict[str, Any]:
    """The node's card, for discovery. It claims no protocol whose methods don't answer here.

    `version` is that of CACP, as in the text's card, where clients check compatibility by its major
    number; the software's is in `extensions.cacp.software`. `capabilities` are the language and
    role that an operator has named; what nobody said is none.
    """
    return {
        "name": f"CACP Agent ({settings.repo})",
        "description": f"Coding agent for {settings.repo} repository",
        "version": f"{CACP}.0",
        "url": settings.url,
        "protocols": {"cacp": CACP},
        "capabilities": [*_said(settings, "language"), *_said(settings, "role")],
        "extensions": {
            "cacp": {
                "repo": settings.repo,
                "role": settings.role,
                "language": settings.language,
                "agentId": settings.agent,
                "mesh": MESH_VERSION,
                "software": f"cacp-server {VERSION}",
                "supportedContractTypes": list(get_args(ContractType)),
                "supportedContextTypes": list(get_args(ContextType)),
            }
        },
    }


def _said(settings: Settings, name: Literal["language", "role"]) -> list[str]:
    """A setting that somebody has made, as a list of one; its default says nothing of the repo."""
    return [getattr(settings, name)] if name in settings.model_fields_set else []


def manifest(settings: Settings) -> Manifest:
    """What the node registers at an ADP exchange (CACP 2.0, Register Agent): its card's facts."""
    own = card(settings)
    about = own["extensions"]["cacp"]
    return Manifest(
        aid=about["agentId"],
        name=own["name"],
        description=own["description"],
        capabilities=[
            Capability(
                id="cacp.coordinate",
                description="Coordinates interface contracts across repositories (CACP 2.0)",
            )
        ],
        invocation=Invocation(
            protocols=[
                InvocationProtocol(
                    type=PROTOCOL, version=own["protocols"]["cacp"], endpoint=own["url"]
                )
            ]
        ),
        metadata=Metadata(
            cacp=CacpMetadata(
                repo=about["repo"],
                role=next(iter(_said(settings, "role")), None),
                languages=_said(settings, "language"),
                supported_contract_types=about["supportedContractTypes"],
            )
        ),
    )
