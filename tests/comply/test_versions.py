"""What the runner says to an agent, in each version."""

import pytest
from pydantic import JsonValue

from comply import versions
from comply.frames import VERSIONS, protocol
from comply.versions import CAPABILITIES, LATEST, LOGIN, initialize, mcp_server, offers
from schemas.jsont import JsonObject

SERVER: JsonObject = {"name": "comply", "command": "/bin/server", "args": [], "env": []}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_said_is_of_the_versions_schema(version: int) -> None:
    schema = protocol(version)

    def unlike(definition: str, value: object) -> list[object]:
        return list(schema.validator.descend(value, {"$ref": f"#/$defs/{definition}"}))

    assert unlike("InitializeRequest", initialize(version, CAPABILITIES[version])) == []
    server = mcp_server(version, {**SERVER})
    assert unlike("NewSessionRequest", {"cwd": "/x", "mcpServers": [server]}) == []
    assert ("agent", LOGIN[version]) in schema.methods


def test_the_sdk_knows_the_first_version() -> None:
    from acp import PROTOCOL_VERSION

    assert PROTOCOL_VERSION in VERSIONS
    assert LATEST == max(VERSIONS) == max(versions.LOGIN)


def test_what_an_agent_offers_has_its_login_methods() -> None:
    login: JsonValue = [{"id": "login", "name": "Log in"}]
    one: JsonObject = {
        "protocolVersion": 1,
        "agentCapabilities": {"loadSession": True},
        "authMethods": login,
    }
    assert offers(1, one) == {"loadSession": True, "authMethods": login}
    assert offers(2, {"capabilities": {"session": {}}}) == {"session": {}}
    assert offers(1, {"agentCapabilities": 3}) == {}
