"""The real agents of `make comply`, and how each is pointed at the scripted model."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODEL = "scripted"
KEY = "none"
"""The scripted model takes any key."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """What an agent is given: its environment, and files in its home."""

    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Real:
    """An agent from a registry. `pointed` says how it is brought to a model at a URL, if at all."""

    name: str
    package: str
    command: tuple[str, ...]
    """Its program is looked for among those of the npm packages, unless it is a path."""
    how: str
    pointed: Callable[[str], Pointed] | None = None

    def server(self, cache: Path, url: str) -> dict[str, Any]:
        """The agent as `agent_servers` has it, with a home of its own, written."""
        home = cache / "home" / self.name
        given = self.pointed(url) if self.pointed else Pointed()
        for name, text in given.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        home.mkdir(parents=True, exist_ok=True)
        own = {
            f"XDG_{name}_HOME": str(home / name.lower())
            for name in ("CONFIG", "DATA", "CACHE", "STATE")
        }
        env = {"HOME": str(home), **own, **(elsewhere(url) if self.pointed else {}), **given.env}
        bin = cache / "npm" / "node_modules" / ".bin"
        program, *args = (word.format(cache=cache, python=sys.executable) for word in self.command)
        return {
            "command": program if "/" in program or program == "node" else str(bin / program),
            "args": args,
            "env": env,
        }


def elsewhere(url: str) -> dict[str, str]:
    """Whatever an agent asks other hosts goes to the model too, which refuses and logs it."""
    both = {f"{scheme}_PROXY": url for scheme in ("HTTP", "HTTPS", "ALL")}
    both["NO_PROXY"] = "127.0.0.1,localhost"
    return {**both, **{name.lower(): value for name, value in both.items()}, "DO_NOT_TRACK": "1"}


def opencode(url: str) -> Pointed:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: {"name": MODEL}},
    }
    config = {
        "provider": {"comply": provider},
        "model": f"comply/{MODEL}",
        "small_model": f"comply/{MODEL}",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"edit": "ask", "bash": "ask"},
    }
    off = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    env = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    return Pointed({"OPENCODE_CONFIG_CONTENT": json.dumps(config), **env})


def qwen(url: str) -> Pointed:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        "tools": {"approvalMode": "default"},
    }
    env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL}
    env["QWEN_CODE_LEGACY_MCP_BLOCKING"] = "1"
    return Pointed(env, {".qwen/settings.json": json.dumps(settings)})


def gemini(url: str) -> Pointed:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
    }
    env = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "GEMINI_MODEL": MODEL}
    env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    return Pointed(env, {".gemini/settings.json": json.dumps(settings)})


def claude(url: str) -> Pointed:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER")
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "ANTHROPIC_MODEL": MODEL,
        "ANTHROPIC_SMALL_FAST_MODEL": MODEL,
        "ENABLE_TOOL_SEARCH": "false",
    }
    asks = {"disableBypassPermissionsMode": "disable", "defaultMode": "default"}
    settings = json.dumps({"permissions": asks})
    return Pointed(env | dict.fromkeys(quiet, "1"), {".claude/settings.json": settings})


def codex(url: str) -> Pointed:
    config = f"""
model = "{MODEL}"
model_provider = "comply"
check_for_update_on_startup = false

[model_providers.comply]
name = "comply"
base_url = "{url}/v1"
env_key = "COMPLY_KEY"
wire_api = "responses"

[analytics]
enabled = false
"""
    return Pointed({"COMPLY_KEY": KEY}, {".codex/config.toml": config})


SDK = "agent-client-protocol==0.12.1"
EXAMPLES = "{cache}/sdk/agent_client_protocol-0.12.1/examples"
TYPESCRIPT = "{cache}/npm/node_modules/@agentclientprotocol/sdk/dist/examples/agent.js"
AGENTS = (
    Real("python-echo", SDK, ("{python}", f"{EXAMPLES}/echo_agent.py"), "as it is"),
    Real("python-full", SDK, ("{python}", f"{EXAMPLES}/agent.py"), "as it is"),
    # The npm package has its example agent in releases before 2.0.
    Real("typescript-example", "@agentclientprotocol/sdk@1.9.0", ("node", TYPESCRIPT), "as it is"),
    Real(
        "opencode",
        "opencode-ai@1.18.33",
        ("opencode", "acp"),
        "the scripted model as a provider of its configuration (chat completions); edits and "
        "commands ask for permission",
        opencode,
    ),
    Real(
        "qwen",
        "@qwen-code/qwen-code@0.24.4",
        ("qwen", "--acp"),
        "the scripted model as `OPENAI_BASE_URL` (chat completions); edits ask for permission, a "
        "session waits for its MCP servers",
        qwen,
    ),
    Real(
        "gemini",
        "@google/gemini-cli@0.61.0",
        ("gemini", "--acp"),
        "the scripted model as `GOOGLE_GEMINI_BASE_URL` (generateContent); its folder is trusted, "
        "as it starts no MCP server in another",
        gemini,
    ),
    Real(
        "claude",
        "@agentclientprotocol/claude-agent-acp@0.101.0",
        ("claude-agent-acp",),
        "the scripted model as `ANTHROPIC_BASE_URL` (messages); edits and commands ask for "
        "permission",
        claude,
    ),
    Real(
        "codex",
        "@agentclientprotocol/codex-acp@2.6.0",
        ("codex-acp",),
        "the scripted model as a provider of its configuration (responses)",
        codex,
    ),
)
