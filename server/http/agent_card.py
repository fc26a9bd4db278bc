"""The agent card (CACP 2.0, GET /.well-known/agent.json), and the ADP manifest made of it."""

from importlib.metadata import version
from typing import Any, Literal, get_args

from schemas.adp import (
    PROTOCOL,
    AdpManifest,
    CacpMetadata,
    Capability,
    Invocation,
    InvocationProtocol,
    Metadata,
)
from schemas.context import ContextType
from schemas.contract import ContractType
from schemas.mesh import MESH_VERSION
from server.settings import Settings

CACP = "2.0"
VERSION = version("cacp-server")
"""The version of this software, looked up once: the look-up takes longer than most calls."""


def card(settings: Settings) -> dict[str, Any]:
    """The node's card, for discovery. It names only protocols that the node serves.

    `version` is that of CACP, whose major number clients check; the version of the software is in
    `extensions.cacp.software`. `capabilities` are the language and role that the operator set;
    defaults are left out.
    """
    return {
        "name": f"CACP Agent ({settings.repo})",
        "description": f"Coding agent for {settings.repo} repository",
        "version": f"{CACP}.0",
        "url": settings.url,
        "protocols": {"cacp": CACP},
        "capabilities": [
            *_set_by_operator(settings, "language"),
            *_set_by_operator(settings, "role"),
        ],
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


def _set_by_operator(settings: Settings, name: Literal["language", "role"]) -> list[str]:
    """The value of a setting as a list; empty for the default, which says nothing about the
    repo."""
    return [getattr(settings, name)] if name in settings.model_fields_set else []


def manifest(settings: Settings) -> AdpManifest:
    """What the node registers at an ADP exchange (CACP 2.0, Register Agent): the facts of its
    card."""
    own = card(settings)
    about = own["extensions"]["cacp"]
    return AdpManifest(
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
                role=next(iter(_set_by_operator(settings, "role")), None),
                languages=_set_by_operator(settings, "language"),
                supported_contract_types=about["supportedContractTypes"],
            )
        ),
    )
