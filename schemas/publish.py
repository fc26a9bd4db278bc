"""Writes the published JSON Schemas from the models: `python -m schemas.publish`."""

import json
from pathlib import Path

from pydantic import BaseModel

from schemas.acp import ACPMessageEnvelope
from schemas.acp_payloads import PAYLOADS
from schemas.handoff import ACPHandoffPackage
from schemas.heal_decision import HealDecision
from schemas.jsont import ComplianceTest
from schemas.manifest import Manifest
from schemas.state import State
from schemas.task_result import TaskResult
from schemas.teamspace import TeamspaceManifest
from schemas.verify_profile import VerifyRegistry

PUBLISHED: dict[str, type[BaseModel]] = {
    "manifest.v2.json": Manifest,
    "verify_profile.v2.json": VerifyRegistry,
    "task_result.v2.json": TaskResult,
    "heal_decision.v2.json": HealDecision,
    "state.v2.json": State,
    "jsont.schema.json": ComplianceTest,
    "acp.envelope.v1.json": ACPMessageEnvelope,
    **{f"acp.{type}.v1.json": model for type, model in PAYLOADS.items()},
    "acp.handoff-package.v1.json": ACPHandoffPackage,
    "acp.teamspace-manifest.v1.json": TeamspaceManifest,
}


def schema_text(name: str) -> str:
    """The published text of the schema of this file name (agent-threader-v2 §7, acpcomply,
    acp-canonical §15)."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": name,
        **PUBLISHED[name].model_json_schema(),
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> None:
    for name in PUBLISHED:
        (Path(__file__).parent / name).write_text(schema_text(name))


if __name__ == "__main__":
    main()
