"""Writes an example that runs, or a manifest to fill in."""

import json
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from threader.errors import ThreaderError


def skill(platform: str | None = None) -> str:
    """The skill that teaches an agent CLI to use the threader, or a platform's notes on it (§4).

    Raises ThreaderError for a platform that has none.
    """
    folder = files("threader") / "skill"
    if platform is None:
        return (folder / "SKILL.md").read_text()
    known = {Path(file.name).stem: file for file in (folder / "platforms").iterdir()}
    if platform not in known:
        raise ThreaderError(f"unknown platform {platform}; there are {', '.join(sorted(known))}")
    return known[platform].read_text()


def scaffold(folder: Path) -> list[str]:
    """Write the example into `folder`, which must be new or empty; returns the files made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ThreaderError(f"{folder.name} is not empty; name a new folder")
    with as_file(files("threader") / "example") as source:
        shutil.copytree(
            source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def init(folder: Path, run_id: str) -> list[str]:
    """Write a minimal manifest, profile and prompt into `folder`; never over a file."""
    texts = {
        "manifest.json": json.dumps(
            {
                "manifest_version": "2.0",
                "run_id": run_id,
                "workspace": ".",
                "context_refs": ["prompts/_shared-context.md"],
                "worker": {"adapter": "claude", "output": "stream-json"},
                "healer": {"adapter": "claude", "output": "stream-json"},
                "tasks": [
                    {
                        "id": "first",
                        "prompt_ref": "prompts/first.md",
                        "depends_on": [],
                        "timeout_sec": 900,
                        "verify_profile": "build_and_test",
                    }
                ],
            },
            indent=2,
        ),
        "verify_profiles.json": json.dumps(
            {
                "profiles": {
                    "build_and_test": {
                        "steps": [{"name": "test", "cmd": "make test", "timeout_sec": 600}],
                        "rollback_on_failure": True,
                    }
                }
            },
            indent=2,
        ),
        "prompts/_shared-context.md": "What every task must know about this repository.",
        "prompts/first.md": "What the first task is to do.",
    }
    for name in texts:
        if (folder / name).exists():
            raise ThreaderError(f"{name} exists already; nothing was written")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")
    return list(texts)
