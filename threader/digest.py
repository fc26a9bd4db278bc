"""Digests that tell whether a manifest, a task or a text changed (agent-threader-v2 §10). Pure."""

import hashlib

import orjson
from pydantic import BaseModel

from schemas.manifest import Manifest, ManifestTask


def sha256(data: bytes) -> str:
    """`sha256:` and the digest in hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _canonical(model: BaseModel) -> bytes:
    return orjson.dumps(model.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)


def manifest_digest(manifest: Manifest) -> str:
    """The digest of the normalised manifest: spelled-out defaults and key order don't matter."""
    return sha256(_canonical(manifest))


def task_definition(task: ManifestTask) -> str:
    """The digest of what makes earlier attempts comparable: prompt, dependencies, verification."""
    parts = [
        task.prompt_ref,
        *task.context_refs,
        "",
        *sorted(task.depends_on),
        "",
        task.verify_profile,
    ]
    return sha256("\0".join(parts).encode())
