"""Digests that show whether a manifest or a task has changed (agent-threader-v2 §10). Pure."""

import hashlib
from typing import Any

import orjson

from schemas.manifest import Manifest, ManifestTask


def sha256(data: bytes) -> str:
    """`sha256:` and the digest in hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _digest(value: dict[str, Any]) -> str:
    return sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def manifest_digest(manifest: Manifest) -> str:
    """The digest of the normalised manifest.

    Key order, explicit defaults, and fields that a later release adds with a default don't matter.
    """
    return _digest(manifest.model_dump(mode="json", exclude_defaults=True))


def is_digest_of(digest: str, manifest: Manifest) -> bool:
    """Whether `digest` was made of `manifest`, by this release or an earlier one."""
    return digest in (manifest_digest(manifest), _former_digest(manifest))


_ADDED = {
    "policy": (
        "outage_pause_sec", "outage_longest_pause_sec", "outage_limit_sec",
        "git_lock_sec", "budget",
    ),
    "worker": ("ready", "ready_sec"),
    "healer": ("ready", "ready_sec"),
}  # fmt: skip
"""Fields added since the releases that digested every default."""


def _former_digest(manifest: Manifest) -> str:
    whole = manifest.model_dump(mode="json")
    spoken = manifest.model_dump(mode="json", exclude_defaults=True)
    for part, names in _ADDED.items():
        for name in set(names) - set(spoken.get(part) or ()):
            (whole[part] or {}).pop(name, None)
    for task in whole["tasks"]:
        if task["priority"] == int(task["priority"]):
            task["priority"] = int(task["priority"])
    return _digest(whole)


def task_definition(task: ManifestTask) -> str:
    """The digest of what identifies a task: prompt, context, dependencies and verification."""
    parts = [
        task.prompt_ref,
        *task.context_refs,
        "",
        *sorted(task.depends_on),
        "",
        task.verify_profile,
    ]
    return sha256("\0".join(parts).encode())
