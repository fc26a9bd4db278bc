"""The agent card (CACP 2.0, GET /.well-known/agent.json), and the ADP manifest made of it."""

from importlib.metadata import version
from typing import Any, get_args

from schemas.adp import (
    PROTOCOL,
    CacpMetadata,
    Capability,
    Invocation,
    InvocationProtocol,
    Manifest,
    Metadata,
)
from schemas.contract import ContractType
from schemas.mesh import MESH_VERSION
from server.settings import Settings


def card(settings: Settings) -> dict[str, Any]:
    """The node's card, for discovery."""
    return {
        "name": f"CACP Agent ({settings.repo})",
        "description": f"Coding agent for {settings.repo} repository",
        "version": version("cacp-server"),
        "url": settings.url,
        "protocols": {"a2a": "0.3", "cacp": "2.0"},
        "capabilities": [settings.language, settings.role],
        "extensions": {
            "cacp": {
                "repo": settings.repo,
                "role": settings.role,
                "language": settings.language,
                "agentId": settings.agent,
                "mesh": MESH_VERSION,
                "supportedContractTypes": list(get_args(ContractType)),
            }
        },
    }


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
                role=about["role"],
                languages=[about["language"]],
                supported_contract_types=about["supportedContractTypes"],
            )
        ),
    )
