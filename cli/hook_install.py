"""Adds `cacp hook` to the settings of agents, and takes it out again.

`install` and `uninstall` compute changes; `cli.file_edit.apply` makes them. Everything else in a
settings file stays as it is, down to comments and indentation; what was added can be taken back.
`with_hooks` and `without_hooks` do the same to a text, for callers that change a file further.
"""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from cli import json_edit
from cli.file_edit import FileEdit, edit_of
from cli.hook import EVENTS

HOOK_SECONDS = 10
"""The agent continues without the hook after this time."""
MATCHERS = {("gemini", "PreCompress"): "manual"}
"""Gemini CLI announces a compression of its own at each turn, whether or not one is due."""
MARK = "// Made by `cacp hook opencode --install`"
_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)
PLUGIN = Path(__file__).with_name("opencode_plugin.js")


FILES = {
    "claude": Path(".claude", "settings.local.json"),
    "codex": Path(".codex", "hooks.json"),
    "gemini": Path(".gemini", "settings.json"),
    "opencode": Path(".opencode", "plugins", "cacp.js"),
}
"""The file of each agent in a project; Claude Code's is that of one user of the project."""


class HookCall(NamedTuple):
    """How a hook calls the node. Without `key_file` it uses the agent's CACP_KEY."""

    program: str = "cacp"
    url: str | None = None
    key_file: Path | None = None

    def words(self, agent: str) -> list[str]:
        """The command of a hook without its event.

        >>> HookCall(url="http://n:1").words("claude")
        ['cacp', 'hook', 'claude', '--url', 'http://n:1']
        """
        words = [self.program, "hook", agent]
        words += ["--url", self.url] if self.url else []
        return words + (["--key-file", str(self.key_file)] if self.key_file else [])


def install(
    agent: str,
    *,
    user: bool = False,
    file: Path | None = None,
    url: str | None = None,
    key_file: Path | None = None,
) -> list[FileEdit]:
    """The changes that add our hooks to an agent's settings: to `file`, else to those of all
    projects of this `user`, else to those of the project in the current folder. Empty when they are
    there already. Raises OSError, and ValueError when a file isn't what it should be."""
    call = HookCall(program(), url, key_file and key_file.resolve())
    return edit_of(file or file_of(agent, user=user), lambda text: with_hooks(text, agent, call))


def uninstall(agent: str, *, user: bool = False, file: Path | None = None) -> list[FileEdit]:
    """The changes that take our hooks out of an agent's settings; a file that held nothing else is
    removed. Empty when there are none. Raises as `install`."""
    return edit_of(file or file_of(agent, user=user), lambda text: without_hooks(text, agent))


def file_of(agent: str, *, user: bool) -> Path:
    """The settings file of an agent, for this project or for all of the user's projects."""
    if not user:
        return FILES[agent]
    home = str(Path.home())
    config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    variable, default, name = {
        "claude": ("CLAUDE_CONFIG_DIR", f"{home}/.claude", "settings.json"),
        "codex": ("CODEX_HOME", f"{home}/.codex", "hooks.json"),
        "gemini": ("GEMINI_CLI_HOME", home, ".gemini/settings.json"),
        "opencode": ("OPENCODE_CONFIG_DIR", f"{config}/opencode", "plugins/cacp.js"),
    }[agent]
    return Path(os.environ.get(variable) or default, name)


def program() -> str:
    """What an agent's shell calls: `cacp` if that is this installation, else its path."""
    script = Path(sys.prefix, "bin", "cacp")
    on_path = shutil.which("cacp")
    if not script.exists() or (on_path and Path(on_path).resolve() == script.resolve()):
        return "cacp"
    return str(script)


def needs_activation() -> bool:
    """Whether a shell calls this installation by `cacp` only while its virtual environment is
    active."""
    active = os.environ.get("VIRTUAL_ENV")
    if not active or Path(active).resolve() != Path(sys.prefix).resolve():
        return False
    script = Path(sys.prefix, "bin", "cacp").resolve()
    own = script.parent
    folders = os.environ.get("PATH", "").split(os.pathsep)
    others = os.pathsep.join(folder for folder in folders if Path(folder).resolve() != own)
    elsewhere = shutil.which("cacp", path=others)
    return elsewhere is None or Path(elsewhere).resolve() != script


def with_hooks(text: str | None, agent: str, call: HookCall) -> str:
    """The text of an agent's settings with a hook for each event, once. Raises ValueError."""
    if agent == "opencode":
        _check_ours(text)
        words = json.dumps(call.words(agent), ensure_ascii=False)
        return _COMMAND.sub(lambda match: f"const COMMAND = {words}", PLUGIN.read_text())
    made = text or ""
    _check(json_edit.loads(made))
    for event in EVENTS[agent]:
        made = _with_hook(made, agent, event, shlex.join([*call.words(agent), event]))
    return made


def without_hooks(text: str | None, agent: str) -> str | None:
    """The text of an agent's settings without our hooks; None when nothing else is left. Raises
    ValueError."""
    if text is None:
        return None
    if agent == "opencode":
        _check_ours(text)
        return None
    hooks = _check(json_edit.loads(text))
    places = [
        (event, group, place)
        for event, groups in hooks.items()
        for group, place, _ in _own_handlers(groups, agent)
    ]
    made = text
    for event, group, place in reversed(places):
        made = json_edit.without(made, ["hooks", event, group, "hooks", place])
        hooks = json_edit.loads(made)["hooks"]
        if not hooks[event][group]["hooks"]:
            made = json_edit.without(made, ["hooks", event, group])
        if not json_edit.loads(made)["hooks"][event]:
            made = json_edit.without(made, ["hooks", event])
    if places and not json_edit.loads(made)["hooks"]:
        made = json_edit.without(made, ["hooks"])
    return None if places and made.strip() == "{}" else made


def installed(text: str | None, agent: str) -> dict[str, list[str]]:
    """The words of our hook's command for each event, as an agent's settings have them. Raises
    ValueError."""
    if agent == "opencode":
        match = _COMMAND.search(text or "") if (text or "").startswith(MARK) else None
        return {event: [*json.loads(match[1]), event] for event in EVENTS[agent]} if match else {}
    hooks = _check(json_edit.loads(text or ""))
    own = {event: _own_handlers(groups, agent) for event, groups in hooks.items()}
    return {event: shlex.split(first[0][2]["command"]) for event, first in own.items() if first}


def _with_hook(text: str, agent: str, event: str, command: str) -> str:
    path: list[str | int] = ["hooks", event]
    groups = _check(json_edit.loads(text)).get(event, [])
    own = _own_handlers(groups, agent)
    if not own:
        # Gemini CLI counts milliseconds.
        timeout = HOOK_SECONDS * (1000 if agent == "gemini" else 1)
        handler = {"type": "command", "command": command, "timeout": timeout}
        added = {"hooks": [handler]}
        matcher = MATCHERS.get((agent, event))
        return json_edit.with_item(text, path, {"matcher": matcher, **added} if matcher else added)
    for group, place, handler in own:
        if handler["command"] != command:
            at = [*path, group, "hooks", place, "command"]
            text = json_edit.with_value(text, at, command)
    return text


def _own_handlers(groups: Any, agent: str) -> list[tuple[int, int, dict[str, Any]]]:
    """Our handlers among those of an event: the number of the group, the place in it, and the
    handler."""
    return [
        (number, place, handler)
        for number, group in enumerate(groups)
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for place, handler in enumerate(group["hooks"])
        if isinstance(handler, dict) and _is_own(handler.get("command"), agent)
    ]


def _is_own(command: object, agent: str) -> bool:
    try:
        words = shlex.split(str(command))
    except ValueError:
        return False
    return words[1:3] == ["hook", agent] and Path(words[0]).name == "cacp"


def _check(settings: Any) -> dict[str, list[Any]]:
    """The hooks in an agent's settings, by event. Raises ValueError."""
    if not isinstance(settings, dict):
        raise ValueError("should be a JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError("hooks: should be an object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise ValueError(f"hooks.{event}: should be a list")
    return hooks


def _check_ours(text: str | None) -> None:
    if text is not None and not text.startswith(MARK):
        raise ValueError("it is another plugin of that name; move it away first")
