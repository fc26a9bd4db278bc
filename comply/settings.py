"""The agents that can be started: a file with `agent_servers`, as editors have it, or an entry of
the public registry of agents, `agent.json`.

{"agent_servers": {"echo": {"command": "python", "args": ["echo.py"], "env": {}}}}
"""

import json
import platform
import shutil
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from schemas.problems import problem_text


class AgentServer(BaseModel):
    """How an agent is started. Unknown fields are ignored: other programs read them."""

    model_config = ConfigDict(extra="ignore")

    command: str
    args: list[str] = []
    env: dict[str, str] = {}
    authenticate: str | None = Field(
        None, description="Id of the authentication method to call before a session is opened."
    )
    logout: bool = Field(False, description="Whether a test may log it out.")


class AgentSettings(BaseModel):
    """Entries are validated only when chosen: an editor may have others in its own form."""

    model_config = ConfigDict(extra="ignore")

    agent_servers: dict[str, JsonValue]


class ChosenServers(BaseModel):
    agent_servers: dict[str, AgentServer]


class PackageOf(BaseModel):
    """What `npx` or `uvx` runs."""

    model_config = ConfigDict(extra="ignore")

    package: str
    args: list[str] = []
    env: dict[str, str] = {}


class BinaryOf(BaseModel):
    """The program in the archive of a platform."""

    model_config = ConfigDict(extra="ignore")

    cmd: str
    args: list[str] = []
    env: dict[str, str] = {}


class Distribution(BaseModel):
    model_config = ConfigDict(extra="ignore")

    npx: PackageOf | None = None
    uvx: PackageOf | None = None
    binary: dict[str, BinaryOf] = {}


class RegistryEntry(BaseModel):
    """The part of a registry's `agent.json` (its agent.schema.json) that says how to start."""

    model_config = ConfigDict(extra="ignore")

    id: str
    distribution: Distribution


class BadSettings(ValueError):
    """The file is invalid, or has no agent of the name."""


def agent_server(text: str, name: str, folder: Path | None = None) -> AgentServer:
    """The agent of this name in the text of a file in this folder. Raises BadSettings."""
    folder = (folder or Path()).absolute()
    try:
        if _is_entry(text):
            return _registered(RegistryEntry.model_validate_json(text), name, folder)
        servers = AgentSettings.model_validate_json(text).agent_servers
        if name not in servers:
            raise BadSettings(f"no agent {name} in agent_servers; there are {', '.join(servers)}")
        asked = ChosenServers.model_validate({"agent_servers": {name: servers[name]}})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadSettings(problem_text(first, "the file")) from None
    return beside(asked.agent_servers[name], folder)


def beside(server: AgentServer, folder: Path) -> AgentServer:
    """The server with absolute paths for its program and for arguments that are files in `folder`,
    since an agent is started in another folder. A bare program name is looked up on the PATH; `~/`
    at its start is the user's home."""
    command = _at_home(server.command)
    named = "/" not in command and shutil.which(command) is not None
    program = command if named else _found(command, folder)
    args = [
        _found(argument, folder) if "/" in argument or "." in argument else argument
        for argument in server.args
    ]
    return server.model_copy(update={"command": program, "args": args})


def _at_home(command: str) -> str:
    # As Zed, whose format this is: in the command alone, and neither ~other nor $HOME.
    return str(Path(command).expanduser()) if command.startswith("~/") else command


def _found(name: str, folder: Path) -> str:
    path = folder / name
    return str(path) if not name.startswith("-") and path.is_file() else name


def _is_entry(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "agent_servers" not in value and "distribution" in value


def _registered(entry: RegistryEntry, name: str, folder: Path) -> AgentServer:
    """A program unpacked beside the file comes first, then `npx`, then `uvx`."""
    if name != entry.id:
        raise BadSettings(f"no agent {name} in the file; it is {entry.id}")
    given, here = entry.distribution, platform_name()
    binary = given.binary.get(here)
    if binary is not None and (program := folder / binary.cmd).is_file():
        return AgentServer(command=str(program), args=binary.args, env=binary.env)
    for runner, package in (("npx", given.npx), ("uvx", given.uvx)):
        if package is not None:
            flags = ["--yes"] if runner == "npx" else []
            args = [*flags, package.package, *package.args]
            return AgentServer(command=runner, args=args, env=package.env)
    if binary is not None:
        raise BadSettings(f"{binary.cmd} is not beside the file: unpack the archive for {here}")
    known = ", ".join(given.binary) or "nothing"
    raise BadSettings(f"{name} has no program for {here}; it has {known}")


def platform_name() -> str:
    """This machine, as the registry names it: `linux-x86_64`."""
    system = {"darwin": "darwin", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    known = {"arm64": "aarch64", "amd64": "x86_64"}
    return f"{system}-{known.get(machine, machine)}"
