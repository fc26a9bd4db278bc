"""The agents that can be started: a file with `agent_servers`, as editors have it.

{"agent_servers": {"echo": {"command": "python", "args": ["echo.py"], "env": {}}}}
"""

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.problems import told


class AgentServer(BaseModel):
    """How an agent is started. Unknown fields are other programs' business."""

    model_config = ConfigDict(extra="ignore")

    command: str
    args: list[str] = []
    env: dict[str, str] = {}
    authenticate: str | None = Field(
        None, description="Id of the authentication method to call before a session is opened."
    )


class AgentSettings(BaseModel):
    model_config = ConfigDict(extra="ignore")

    agent_servers: dict[str, AgentServer]


class BadSettings(ValueError):
    """The file, or a name that is not in it."""


def agent_server(text: str, name: str) -> AgentServer:
    """The agent of this name in the file's text. Raises BadSettings."""
    try:
        servers = AgentSettings.model_validate_json(text).agent_servers
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadSettings(told(first, "the file")) from None
    if name not in servers:
        raise BadSettings(f"no agent {name} in agent_servers; there are {', '.join(servers)}")
    return servers[name]
