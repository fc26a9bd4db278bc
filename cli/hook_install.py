"""Adds `cacp hook` to the settings of Claude Code and Codex. Other settings stay as they are, and
adding it again changes nothing."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from cli.hook import EVENTS

FILES = {
    "claude": Path(".claude", "settings.local.json"),
    "codex": Path(".codex", "hooks.json"),
}
"""The settings of one user in one project."""
USER_FILES = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": ("CODEX_HOME", ".codex", "hooks.json"),
}
"""The settings of one user in all projects: the variable that names their folder, the folder in the
home directory, and the file."""
HOOK_SECONDS = 10
"""The agent continues without the hook after this time."""

Json = dict[str, Any]


def file_of(agent: str, *, user: bool) -> Path:
    """The settings file of an agent, for this project or for all of the user's projects."""
    if not user:
        return FILES[agent]
    variable, folder, name = USER_FILES[agent]
    return Path(os.environ.get(variable) or Path.home() / folder) / name


def command(agent: str, event: str, url: str | None) -> str:
    """The shell command of a hook.

    >>> command("claude", "Stop", None)
    'cacp hook claude Stop'
    """
    words = ["cacp", "hook", agent, event, *(["--url", url] if url else [])]
    return shlex.join(words)


def merged(settings: Json, agent: str, url: str | None) -> Json:
    """The settings with our hook for every event, each once. Raises ValueError for settings that
    don't have the expected form."""
    made = json.loads(json.dumps(settings))
    hooks = made.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError("hooks: should be an object")
    for event in EVENTS:
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise ValueError(f"hooks.{event}: should be a list")
        wanted = command(agent, event, url)
        own_handlers = [handler for handler in _handlers(groups) if _is_ours(handler, agent)]
        for handler in own_handlers:
            handler["command"] = wanted
        if not own_handlers:
            handler = {"type": "command", "command": wanted, "timeout": HOOK_SECONDS}
            groups.append({"hooks": [handler]})
    return dict(made)


def install(file: Path, agent: str, url: str | None) -> tuple[bool, Path | None]:
    """Merge our hooks into a file, which is made if absent. Returns whether it changed, and the
    backup of what was there. Raises OSError, and ValueError when the file holds no settings."""
    target = file.resolve()
    before = read(target)
    after = merged(before, agent, url)
    if after == before:
        return False, None
    backup = None
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o600
    if target.exists():
        mode = target.stat().st_mode & 0o777
        backup = target.with_name(f"{target.name}.bak")
        _write(backup, target.read_text(), mode)
    _write(target, shown(after), mode)
    return True, backup


def read(file: Path) -> Json:
    """The settings in a file; {} when it isn't there. Raises ValueError and OSError."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return {}
    settings = json.loads(text) if text.strip() else {}
    if not isinstance(settings, dict):
        raise ValueError("should be a JSON object")
    return settings


def shown(settings: Json) -> str:
    return json.dumps(settings, ensure_ascii=False, indent=2) + "\n"


def _handlers(groups: list[Any]) -> list[Json]:
    return [
        handler
        for group in groups
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for handler in group["hooks"]
        if isinstance(handler, dict)
    ]


def _is_ours(handler: Json, agent: str) -> bool:
    return str(handler.get("command", "")).startswith(f"cacp hook {agent} ")


def _write(file: Path, text: str, mode: int) -> None:
    """Replace the file in one step: a reader gets the old or the new one."""
    part = file.with_name(f"{file.name}.part")
    part.touch(mode=mode)
    part.write_text(text)
    part.replace(file)
