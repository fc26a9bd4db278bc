"""Real agents, for `make comply`: fetched into a cache folder, run, and shown in a matrix.

    python -m tests.comply.real CACHE docs/comply-matrix.md

What follows the marker in the page is judged by hand, and kept.
"""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

SDK, OLDER_SDK = "agent-client-protocol==0.12.1", "@agentclientprotocol/sdk@1.9.0"
"""The npm package has its example agent in releases before 2.0."""
PACKAGES = (OLDER_SDK, "@google/gemini-cli@0.61.0", "opencode-ai@1.18.33")
MARKER = "<!-- Below: judged by hand. `make comply` keeps it. -->"
OFFLINE = ("python-echo", "python-full", "typescript-example")
LOCKED = ("gemini-cli", "opencode")
WITHOUT_A_MODEL = (
    *("required.initialize", "required.initialize.version", "required.error.method-not-found"),
    *("required.error.invalid-params", "required.session.new", "required.session.distinct"),
    *("required.extension.meta", "optional.session.unknown", "optional.session.load-unknown"),
    *("optional.mcp.session", "optional.modes", "optional.modes.unknown"),
    "optional.slash-commands",
)
"""The tests of the suite that send no prompt to a session."""
HEAD = """# Real agents against the suite `acp`

Made by `make comply`. The first three run as they are. Gemini CLI and OpenCode would need an
account for a prompt, so they run the tests that need none.
"""


def fetch(cache: Path) -> Path:
    """The packages, in the cache folder; the folder of the Python SDK's examples."""
    for name in ("sdk", "npm", "home"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    package, version = SDK.split("==")
    folder = cache / "sdk" / f"{package.replace('-', '_')}-{version}"
    if not folder.exists():
        download = ["download", "--no-deps", "--no-binary", ":all:", "-d", str(cache / "sdk"), SDK]
        subprocess.run([sys.executable, "-m", "pip", *download], check=True)
        with tarfile.open(folder.with_name(folder.name + ".tar.gz")) as archive:
            archive.extractall(cache / "sdk", filter="data")
    if not (cache / "npm" / "node_modules" / ".bin" / "opencode").exists():
        given = ["--no-audit", "--no-fund", "--prefix", str(cache / "npm")]
        subprocess.run(["npm", "install", *given, *PACKAGES], check=True)
    return folder / "examples"


def settings(cache: Path) -> Path:
    """A file with `agent_servers`. The agents get a home of their own."""
    examples, modules = fetch(cache), cache / "npm" / "node_modules"
    home = cache / "home"
    env = {"HOME": str(home)} | {
        f"XDG_{name}_HOME": str(home / name.lower())
        for name in ("CONFIG", "DATA", "CACHE", "STATE")
    }
    example = modules / "@agentclientprotocol/sdk/dist/examples/agent.js"
    commands = {
        "python-echo": [sys.executable, str(examples / "echo_agent.py")],
        "python-full": [sys.executable, str(examples / "agent.py")],
        "typescript-example": ["node", str(example)],
        "gemini-cli": [str(modules / ".bin/gemini"), "--acp"],
        "opencode": [str(modules / ".bin/opencode"), "acp"],
    }
    file = cache / "agents.json"
    servers = {
        name: {"command": command, "args": args, "env": env}
        for name, (command, *args) in commands.items()
    }
    file.write_text(json.dumps({"agent_servers": servers}, indent=2))
    return file


def report(file: Path, agents: tuple[str, ...], tests: tuple[str, ...], jobs: int) -> str:
    """The Markdown report, without its title. Findings are no failure here."""
    named = [word for name in agents for word in ("--agent", name)]
    command = [sys.executable, "-m", "cli.main", "comply", "run", *tests, *named]
    done = subprocess.run(
        [*command, "--settings", str(file), "-j", str(jobs), "--timeout", "120"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ,
    )
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    return done.stdout.partition("\n\n")[2].replace("\n## ", "\n### ")


def main(cache: Path, page: Path) -> None:
    file = settings(cache.resolve())
    offline = report(file, OFFLINE, ("acp",), 2)
    locked = report(file, LOCKED, WITHOUT_A_MODEL, 1)
    judged = page.read_text().partition(MARKER)[2] if page.exists() else "\n"
    sections = [HEAD, "## Example agents\n", offline, "## Agents without an account\n", locked]
    page.write_text("\n".join(sections) + f"\n{MARKER}{judged}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
