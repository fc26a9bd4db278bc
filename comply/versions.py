"""Differences between the protocol versions in the runner's own messages to an agent."""

from pydantic import JsonValue

from schemas.jsont import ComplianceTest, JsonObject

LATEST = 2
CAPABILITIES: dict[int, JsonObject] = {
    1: {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
    2: {},
}
"""What a client offers unless a test says otherwise. Files and terminals are gone in version 2."""
LOGIN = {1: "authenticate", 2: "auth/login"}
_INFO: JsonObject = {"name": "cacp-comply", "version": "1"}


def client_capabilities(test: ComplianceTest) -> JsonObject:
    """The client's capabilities in a test."""
    return _merged(CAPABILITIES[test.protocol_version], test.init.client_capabilities or {})


def _merged(usual: JsonObject, given: JsonObject) -> JsonObject:
    """`usual`, overridden by `given` at every depth."""
    whole = dict(usual)
    for name, value in given.items():
        below = usual.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        whole[name] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return whole


def initialize(version: int, capabilities: JsonObject) -> JsonObject:
    """The params of `initialize`."""
    if version == 1:
        return {"protocolVersion": 1, "clientCapabilities": capabilities}
    return {"protocolVersion": version, "info": _INFO, "capabilities": capabilities}


def offers(version: int, answer: JsonObject) -> JsonObject:
    """The agent's capabilities in its answer to `initialize`, with its `authMethods`."""
    offered = answer.get("agentCapabilities" if version == 1 else "capabilities")
    capabilities = dict(offered) if isinstance(offered, dict) else {}
    methods = answer.get("authMethods")
    return capabilities | ({"authMethods": methods} if isinstance(methods, list) else {})


def mcp_server(version: int, server: JsonObject) -> JsonValue:
    """An entry of `mcpServers` for a server over stdio: version 2 names the transport."""
    return server if version == 1 else {"type": "stdio", **server}
