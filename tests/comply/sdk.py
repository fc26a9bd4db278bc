"""What is said on the wire, held against the models of the official Python SDK."""

from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel, JsonValue

from comply.matching import look_up
from comply.record import Frame
from schemas.jsont import JsonObject


@cache
def models() -> dict[str, tuple[type[BaseModel], type[BaseModel] | None]]:
    """What is said on the wire, as the official SDK has it: params, and result where there is one.

    The SDK takes a second to import: only who runs these tests waits for it.
    """
    from acp import schema

    return {
        "initialize": (schema.InitializeRequest, schema.InitializeResponse),
        "authenticate": (schema.AuthenticateRequest, schema.AuthenticateResponse),
        "logout": (schema.LogoutRequest, schema.LogoutResponse),
        "session/list": (schema.ListSessionsRequest, schema.ListSessionsResponse),
        "session/delete": (schema.DeleteSessionRequest, schema.DeleteSessionResponse),
        "session/resume": (schema.ResumeSessionRequest, schema.ResumeSessionResponse),
        "session/close": (schema.CloseSessionRequest, schema.CloseSessionResponse),
        "session/set_config_option": (
            schema.SetSessionConfigOptionSelectRequest,
            schema.SetSessionConfigOptionResponse,
        ),
        "elicitation/create": (
            schema.CreateFormSessionElicitationRequest,
            schema.DeclineElicitationResponse,
        ),
        "session/new": (schema.NewSessionRequest, schema.NewSessionResponse),
        "session/load": (schema.LoadSessionRequest, schema.LoadSessionResponse),
        "session/set_mode": (schema.SetSessionModeRequest, schema.SetSessionModeResponse),
        "session/prompt": (schema.PromptRequest, schema.PromptResponse),
        "session/cancel": (schema.CancelNotification, None),
        "session/update": (schema.SessionNotification, None),
        "session/request_permission": (
            schema.RequestPermissionRequest,
            schema.RequestPermissionResponse,
        ),
        "fs/read_text_file": (schema.ReadTextFileRequest, schema.ReadTextFileResponse),
        "fs/write_text_file": (schema.WriteTextFileRequest, schema.WriteTextFileResponse),
        "terminal/create": (schema.CreateTerminalRequest, schema.CreateTerminalResponse),
        "terminal/output": (schema.TerminalOutputRequest, schema.TerminalOutputResponse),
        "terminal/wait_for_exit": (
            schema.WaitForTerminalExitRequest,
            schema.WaitForTerminalExitResponse,
        ),
        "terminal/release": (schema.ReleaseTerminalRequest, schema.ReleaseTerminalResponse),
    }


def tag_of(message: JsonObject) -> JsonValue:
    return look_up(message, "params.update.sessionUpdate")


NEWER = {"notice", "compaction_update", "compaction_summary_chunk"}
"""Updates of the schema that the SDK's release does not have yet."""


def check_messages(frames: list[Frame]) -> Iterator[str]:
    """Hold what both sides said against the official SDK's models; gives the methods met.

    What was refused is left out: tests send wrong messages on purpose.
    """
    results = {
        (not frame.sent, frame.message["id"]): frame.message["result"]
        for frame in frames
        if isinstance(frame.message, dict) and "result" in frame.message
    }
    for frame in frames:
        message = frame.message
        if not isinstance(message, dict) or frame.kind == "mcp":
            continue
        params, result = models().get(str(message.get("method")), (None, None))
        if params is None or (result and (frame.sent, message["id"]) not in results):
            continue
        if str(message["method"]) == "session/update" and tag_of(message) in NEWER:
            continue
        params.model_validate(message["params"])
        if result is not None:
            result.model_validate(results[frame.sent, message["id"]] or {})
        yield str(message["method"])
