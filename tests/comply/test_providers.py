"""The client's side: real files and processes, jailed to the sandbox."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from comply.process import OUTPUT_BYTES
from comply.providers import ProviderError, Providers
from schemas.jsont import JsonObject, Policy

ALL: JsonObject = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]


def use(
    folder: Path,
    work: Callable[[Providers], Awaitable[Any]],
    policy: Policy = "yolo",
    capabilities: JsonObject = ALL,
) -> Any:
    async def whole() -> Any:
        providers = Providers(folder, capabilities, policy)
        try:
            return await work(providers)
        finally:
            await providers.close()

    return asyncio.run(asyncio.wait_for(whole(), 20))


def call(folder: Path, method: str, policy: Policy = "yolo", **params: Any) -> Any:
    return use(folder, lambda one: one.answer(method, params), policy)


def test_a_file_is_read_by_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    path = str(tmp_path / "a.txt")
    assert call(tmp_path, "fs/read_text_file", path=path) == {"content": "1\n2\n3\n"}
    some = call(tmp_path, "fs/read_text_file", path=path, line=2, limit=1)
    assert some == {"content": "2\n"}


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    call(tmp_path, "fs/write_text_file", path=str(tmp_path / "d" / "a.txt"), content="é")
    assert (tmp_path / "d" / "a.txt").read_text() == "é"


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file"])
@pytest.mark.parametrize("path", ["a.txt", "/etc/passwd", "{}/../x", "{}/link/x"])
def test_nothing_outside_the_sandbox_is_touched(method: str, path: str, tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (box / "link").symlink_to(tmp_path)
    (tmp_path / "x").write_text("secret")
    with pytest.raises(ProviderError, match=r"outside the workspace|must be absolute"):
        call(box, method, path=path.format(box), content="")
    assert (tmp_path / "x").read_text() == "secret"


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("fs/read_text_file", {}, "missing or wrong: 'path'"),
        ("fs/read_text_file", {"path": "{}/none"}, "No such file"),
        ("terminal/output", {"terminalId": "t"}, "the terminal does not exist"),
        ("terminal/create", {"command": "/no/such"}, "No such file"),
        ("x/y", {}, "x/y is not offered"),
    ],
)
def test_bad_requests_are_refused(
    method: str, params: dict[str, str], said: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {name: text.format(tmp_path) for name, text in params.items()}
    with pytest.raises(ProviderError, match=said):
        call(tmp_path, method, **given)


@pytest.mark.parametrize(
    "method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/kill"]
)
def test_what_is_not_offered_is_not_there(method: str, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="is not offered"):
        use(tmp_path, lambda one: one.answer(method, {}), "yolo", {"fs": {}, "terminal": False})


@pytest.mark.parametrize(
    ("policy", "read", "edit", "execute"),
    [
        ("none", "n", "n", "n"),
        ("read", "y", "n", "n"),
        ("write", "y", "y", "n"),
        ("yolo", "y", "y", "y"),
    ],
)
def test_the_policy_decides_permissions_and_providers(
    policy: Policy, read: str, edit: str, execute: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("")

    def allowed(method: str, **params: Any) -> str:
        try:
            call(tmp_path, method, policy, **params)
        except ProviderError:
            return "n"
        return "y"

    for kind, wanted in (("read", read), ("edit", edit), ("execute", execute), (None, execute)):
        given = {"toolCall": {"toolCallId": "1", "kind": kind}, "options": OPTIONS}
        outcome = call(tmp_path, "session/request_permission", policy, **given)["outcome"]
        assert outcome == {"outcome": "selected", "optionId": wanted}
    assert allowed("fs/read_text_file", path=str(tmp_path / "a")) == read
    assert allowed("fs/write_text_file", path=str(tmp_path / "b"), content="") == edit
    assert allowed("terminal/create", command="true") == execute


def test_after_a_cancel_a_permission_is_cancelled(tmp_path: Path) -> None:
    async def work(providers: Providers) -> Any:
        providers.cancelled = True
        return await providers.answer("session/request_permission", {"toolCall": {}})

    assert use(tmp_path, work) == {"outcome": {"outcome": "cancelled"}}


def test_a_terminal_runs_in_the_sandbox_and_keeps_the_end_of_its_output(tmp_path: Path) -> None:
    async def work(providers: Providers) -> Any:
        script = {"command": "sh", "args": ["-c", "pwd; printf 0123456789; exit 3"]}
        made = await providers.answer("terminal/create", {**script, "outputByteLimit": 5})
        status = await providers.answer("terminal/wait_for_exit", made)
        said = await providers.answer("terminal/output", made)
        await providers.answer("terminal/release", made)
        return status, said

    status, said = use(tmp_path, work)
    assert status == {"exitCode": 3, "signal": None}
    assert said == {"output": "56789", "truncated": True, "exitStatus": status}


def test_a_terminal_is_killed_with_its_children(tmp_path: Path) -> None:
    async def work(providers: Providers) -> Any:
        made = await providers.answer(
            "terminal/create", {"command": "sh", "args": ["-c", "sleep 60 & sleep 60"]}
        )
        assert "exitStatus" not in await providers.answer("terminal/output", made)
        await providers.answer("terminal/kill", made)
        return await providers.answer("terminal/wait_for_exit", made)

    assert use(tmp_path, work) == {"exitCode": None, "signal": "SIGKILL"}


def test_what_is_allowed_is_allowed_once_whichever_comes_first(tmp_path: Path) -> None:
    options = [
        {"optionId": f"{word}_{how}", "name": "x", "kind": f"{word}_{how}"}
        for how in ("always", "once")
        for word in ("allow", "reject")
    ]
    for policy, wanted in (("yolo", "allow_once"), ("none", "reject_once")):
        given = {"toolCall": {"toolCallId": "1"}, "options": options}
        outcome = call(tmp_path, "session/request_permission", policy, **given)["outcome"]  # type: ignore[arg-type]
        assert outcome == {"outcome": "selected", "optionId": wanted}


def test_permission_is_asked_for_a_subject_in_the_second_version(tmp_path: Path) -> None:
    call_ = {"toolCallId": "1", "kind": "read"}
    given = {"subject": {"type": "tool_call", "toolCall": call_}, "options": OPTIONS}
    outcome = call(tmp_path, "session/request_permission", "read", **given)["outcome"]
    assert outcome == {"outcome": "selected", "optionId": "y"}


def test_a_form_is_declined_and_an_address_refused_when_only_forms_are_offered(
    tmp_path: Path,
) -> None:
    def ask(mode: str) -> Any:
        offered: JsonObject = {"elicitation": {"form": {}}}
        return use(
            tmp_path, lambda one: one.answer("elicitation/create", {"mode": mode}), "yolo", offered
        )

    assert ask("form") == {"action": "decline"}
    with pytest.raises(ProviderError, match="mode url is not offered"):
        ask("url")
    with pytest.raises(ProviderError, match="elicitation/create is not offered"):
        call(tmp_path, "elicitation/create", mode="form")


def test_a_promised_terminal_has_ended_and_printed_nothing(tmp_path: Path) -> None:
    async def work(providers: Providers) -> Any:
        providers.promised.add("made-up")
        given = {"terminalId": "made-up"}
        said = [
            await providers.answer(f"terminal/{one}", given)
            for one in ("output", "wait_for_exit", "kill", "release")
        ]
        with pytest.raises(ProviderError, match="the terminal does not exist"):
            await providers.answer("terminal/output", given)
        return said

    ended = {"exitCode": 0, "signal": None}
    shown = {"output": "", "truncated": False, "exitStatus": ended}
    assert use(tmp_path, work) == [shown, ended, {}, {}]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("fs/read_text_file", {"path": "{}/none"}, -32002),
        ("fs/read_text_file", {"path": "{}"}, -32602),
        ("fs/read_text_file", {}, -32602),
        ("terminal/output", {"terminalId": "t"}, -32002),
        ("terminal/create", {"command": "/no/such"}, -32602),
    ],
)
def test_what_is_not_there_is_told_by_its_code(
    method: str, params: dict[str, str], code: int, tmp_path: Path
) -> None:
    """Resource not found: a given resource, such as a session or file (ErrorCode of the schema)."""
    given: Any = {name: value.format(tmp_path) for name, value in params.items()}
    with pytest.raises(ProviderError) as refused:
        call(tmp_path, method, **given)
    assert refused.value.code == code


def test_what_is_no_file_or_too_large_is_refused(tmp_path: Path) -> None:
    """A pipe would be waited for, and every other test with it."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(OUTPUT_BYTES + 1)
    for method, name, said in (
        ("fs/read_text_file", "pipe", "path is not a file"),
        ("fs/write_text_file", "pipe", "path is not a file"),
        ("fs/read_text_file", "large", "the file has more than 16 MiB"),
    ):
        with pytest.raises(ProviderError, match=said):
            call(tmp_path, method, path=str(tmp_path / name), content="")


def test_a_terminal_ends_though_its_children_hold_its_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comply.providers.LAST_SECONDS", 0.1)

    async def work(providers: Providers) -> Any:
        made = await providers.answer(
            "terminal/create", {"command": "sh", "args": ["-c", "sleep 600 & echo $!"]}
        )
        status = await providers.answer("terminal/wait_for_exit", made)
        pid = ""
        while not pid:
            pid = (await providers.answer("terminal/output", made))["output"]
        os.kill(int(pid), signal.SIGKILL)
        return status

    assert use(tmp_path, work) == {"exitCode": 0, "signal": None}


def test_a_terminal_keeps_no_more_than_is_bearable(tmp_path: Path) -> None:
    async def work(providers: Providers) -> int:
        given = {"command": "true", "outputByteLimit": 1 << 60}
        made = await providers.answer("terminal/create", given)
        return providers.terminals[made["terminalId"]].limit

    assert use(tmp_path, work) == OUTPUT_BYTES
