"""A compliance test, as written in a `.jsont` file (acpcomply, JSON Template Test Schema).

Extensions of the specification: `setup`; `transport` with the steps `request` and `run`; `as`, `to`
and `headers` for HTTP; `captures`; the operators `$absent`, `$every` and `$count` in what is
expected; `naUnless`, `naIf`, `retry`, `strayLines`, `fromStart` and `fresh`; `messages` that are
forbidden; `setting`, `protocolVersion` and the message kind `mcp`. Unknown fields are ignored.
"""

import base64
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

JsonObject = dict[str, JsonValue]
Milliseconds = Annotated[float, Field(ge=0, le=600_000)]
SetupName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*$")]
Severity = Literal["required", "optional"]
Transport = Literal["stdio", "http", "command"]
Policy = Literal["none", "read", "write", "yolo"]
STEPS = ("newSession", "send", "request", "run", "expect", "forbid", "delayMs")
KINDS = ("response", "notification", "clientRequest", "mcp", "http", "output")


class JsontModel(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, populate_by_name=True)


class SandboxFile(JsontModel):
    path: str = Field(description="Relative to the sandbox.")
    text: str | None = None
    base64: str | None = None

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if self.text is not None and self.base64 is not None:
            raise ValueError("a file has text or base64, not both")
        return self

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise ValueError("must lie in the sandbox")
        return path

    @field_validator("base64")
    @classmethod
    def _bytes(cls, text: str | None) -> str | None:
        try:
            base64.b64decode(text or "", validate=True)
        except ValueError as error:
            raise ValueError(f"is not base64: {error}") from None
        return text


class Sandbox(JsontModel):
    files: list[SandboxFile] = []


class Precondition(JsontModel):
    """One of four conditions. The test is NA when the condition is not `mustBe`, or when only other
    runners know it."""

    model_config = ConfigDict(extra="allow")

    agent_cap: str | None = Field(
        None, alias="agentCap", description="A path in the agent's capabilities, or node's card."
    )
    cap: str | None = Field(
        None, description="A path in our capabilities, as client.fs.readTextFile"
    )
    method: str | None = Field(None, description="A method that the node lists at GET /methods.")
    setting: str | None = Field(
        None, description="A field of the agent's entry in the settings, which the operator set."
    )
    must_be: bool = Field(True, alias="mustBe")

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        asked = (self.agent_cap, self.cap, self.method, self.setting)
        known = sum(item is not None for item in asked)
        if known > 1 or not (known or self.model_extra):
            raise ValueError("a precondition has exactly one of agentCap, cap, method and setting")
        return self

    @property
    def foreign(self) -> str | None:
        """The condition that only other runners know; None when it is one of the four."""
        if (self.agent_cap, self.cap, self.method, self.setting) != (None, None, None, None):
            return None
        return ", ".join(self.model_extra or {})


class Init(JsontModel):
    client_capabilities: JsonObject | None = Field(None, alias="clientCapabilities")
    permission_policy: Policy = Field("yolo", alias="permissionPolicy")


class NewSession(JsontModel):
    mcp_servers: list[JsonValue] = Field([], alias="mcpServers")
    capture: Variable = "sessionId"


class HttpRequest(JsontModel):
    """Any HTTP request; `send` is the short form of a JSON-RPC frame to `POST /`."""

    method: str = "POST"
    path: str = "/"
    body: JsonValue = Field(None, description="Sent as JSON.")
    text: str | None = Field(None, description="Sent unchanged, in place of `body`.")


class CommandRun(JsontModel):
    """One run of the command under test, with this on its standard input."""

    stdin: str


class ExpectedMessage(JsontModel):
    """Exactly one kind of message, with the fields that matter; string leaves are regexes."""

    response: JsonObject | None = None
    notification: JsonObject | None = None
    client_request: JsonObject | None = Field(None, alias="clientRequest")
    mcp: JsonObject | None = Field(
        None, description="Method and params of a message from the agent to ${mcpServer}."
    )
    http: JsonObject | None = Field(None, description="status, headers, body (JSON), text.")
    output: JsonObject | None = Field(None, description="status, stdout, json.")
    reply: JsonValue = Field(
        None,
        description="A canned answer to a clientRequest: an object with nothing but result or "
        "error, or else the result itself.",
    )
    late: bool = Field(False, description="Reply after the step that follows this window.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = (
            *(self.response, self.notification, self.client_request),
            *(self.mcp, self.http, self.output),
        )
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(f"a message has exactly one of {', '.join(KINDS)}")
        return self


class Capture(JsontModel):
    path: str = Field(description="A path in a matched message, as result.repos.0.repo_id")
    var: Variable


class Expect(JsontModel):
    timeout_ms: Milliseconds = Field(10_000, alias="timeoutMs")
    messages: list[ExpectedMessage]
    captures: list[Capture] = []
    na_unless: str | None = Field(
        None,
        alias="naUnless",
        description="NA for this reason when none of its messages comes. They stay to be expected.",
    )
    na_if: str | None = Field(
        None,
        alias="naIf",
        description="NA for this reason when one of its messages comes. They stay to be expected.",
    )
    fresh: bool = Field(
        False, description="Only what came after the latest step that did something counts."
    )
    retry: bool = Field(
        False, description="Repeat the request before, until it is met or the time is over."
    )


class Forbid(JsontModel):
    """Forbids messages from the previous step until the end of this window."""

    timeout_ms: Milliseconds = Field(5000, alias="timeoutMs")
    methods: list[str] = []
    messages: list[ExpectedMessage] = Field(
        [], description="What must not come after the latest step that did something."
    )
    stray_lines: bool = Field(
        False, alias="strayLines", description="Forbid lines on stdout that are not messages."
    )
    from_start: bool = Field(
        False, alias="fromStart", description="Count all that came since the test began."
    )


class JsontStep(JsontModel):
    new_session: NewSession | None = Field(None, alias="newSession")
    send: JsonObject | None = None
    request: HttpRequest | None = None
    run: CommandRun | None = None
    expect: Expect | None = None
    forbid: Forbid | None = None
    delay_ms: Milliseconds | None = Field(None, alias="delayMs")
    caller: Literal["first", "second", "third", "human", "sync", "nobody"] = Field(
        "first", alias="as", description="Whose key an HTTP request carries."
    )
    to: Literal["node", "peer"] = "node"
    headers: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        actions = (
            *(self.new_session, self.send, self.request, self.run),
            *(self.expect, self.forbid, self.delay_ms),
        )
        if sum(action is not None for action in actions) != 1:
            raise ValueError(f"a step has exactly one of {', '.join(STEPS)}")
        return self


class ComplianceTest(JsontModel):
    title: str
    description: str = ""
    area: str = Field("", description="The row of the report; the title if empty.")
    severity: Severity
    docs: list[str] = Field([], description="Links to the clauses that it checks.")
    transport: Transport = "stdio"
    protocol_version: Literal[1, 2] = Field(
        1,
        alias="protocolVersion",
        description="The version of the Agent Client Protocol that the test is of.",
    )
    preconditions: list[Precondition] = []
    sandbox: Sandbox = Sandbox()
    init: Init = Init()
    setup: SetupName | None = Field(
        None,
        description="The set-up that runs before the steps: NAME.setup.json in the test's folder.",
    )
    steps: list[JsontStep] = Field(min_length=1)


class SharedSetup(JsontModel):
    """A set-up, as written in a `.setup.json` file beside the tests that share it."""

    description: str = ""
    setup: SetupName | None = Field(None, description="The set-up that this one builds on.")
    steps: list[JsontStep] = Field(min_length=1)
