"""Enters `cacp hook` into the settings of Claude Code and Codex: a merge that changes nothing
else, and nothing when it was made before."""

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
"""The settings of one project, and of one person in it."""
USER_FILES = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": ("CODEX_HOME", ".codex", "hooks.json"),
}
"""Those of all projects: the variable that names their folder, its name at home, and the file."""
HOOK_SECONDS = 10
"""After which the agent goes on without the hook."""

Json = dict[str, Any]


def file_of(agent: str, *, user: bool) -> Path:
    """The settings of an agent, for this project or for all of the user's."""
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
    """Settings with our hooks for every event, each once. Raises ValueError for settings that are
    of another form."""
    made = json.loads(json.dumps(settings))
    hooks = made.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError("hooks: should be an object")
    for event in EVENTS:
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise ValueError(f"hooks.{event}: should be a list")
        wanted = command(agent, event, url)
        ours = [one for one in _handlers(groups) if _is_ours(one, agent)]
        for handler in ours:
            handler["command"] = wanted
        if not ours:
            handler = {"type": "command", "command": wanted, "timeout": HOOK_SECONDS}
            groups.append({"hooks": [handler]})
    return dict(made)


def install(file: Path, agent: str, url: str | None) -> tuple[bool, Path | None]:
    """Merge our hooks into a file, made if absent: whether it changed, and the backup of what was
    there. Raises ValueError when it holds no such settings, and OSError."""
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
    """The settings in a file; none when it isn't there. Raises ValueError and OSError."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return {}
    found = json.loads(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("should be a JSON object")
    return found


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
    """In one step: an agent that reads meanwhile finds the old or the new."""
    part = file.with_name(f"{file.name}.part")
    part.touch(mode=mode)
    part.write_text(text)
    part.replace(file)
