"""Who set a setting, and what is shown of it."""

from pathlib import Path

import pytest

from server.setting_sources import misspelt, shown
from server.settings import load

TOKEN = "a-mesh-token-that-nobody-guesses"


def test_a_variable_that_nothing_reads_is_named_with_the_one_that_may_be_meant() -> None:
    read = {"CACP_PORT": "1", "CACP_KEY": "k", "CACP_TASK_ID": "t", "PATH": "/bin"}
    read["CACP_HOOK_SECONDS"] = "1"
    assert misspelt(read) == {}
    assert misspelt({**read, "CACP_PROT": "1", "CACP_X": "1"}) == {
        "CACP_PROT": "CACP_PORT",
        "CACP_X": "",
    }


def test_who_set_each_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cacp.toml"
    file.write_text('port = 1\nrole = "backend"\nlanguage = "go"\n')
    variables = {"CACP_PORT": "2", "CACP_ROLE": "infra", "CACP_REPO": ""}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings = load(file, port=3, host=None)
    by_name = {setting.name: setting for setting in shown(settings, variables)}
    assert {
        name: (each.value, each.origin)
        for name, each in by_name.items()
        if name in settings.model_fields_set
    } == {
        "port": ("3", "option"),
        "role": ("infra", "variable"),
        "language": ("go", "file"),
    }
    assert (by_name["repo"].value, by_name["repo"].origin) == ("local", "default")
    assert by_name["host"].origin == "default"
    assert by_name["host"].about.startswith("Address to listen on")


def test_no_secret_is_shown(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    settings = load(
        mesh_token_file=token_file,
        adp_key="adp-secret",
        acp_wake_commands={"aid://x/a": ["/bin/wake", "--key", "wake-secret"]},
        public_url="https://user:url-secret@cacp.example",
        artifact_roots=(Path("/a"), Path("/b")),
    )
    listed = shown(settings, {})
    assert all(
        secret not in str(listed) for secret in (TOKEN, "adp-secret", "wake-secret", "url-secret")
    )
    values = {setting.name: setting.value for setting in listed}
    assert values["mesh_token"] == values["adp_key"] == values["public_url"] == "set"
    assert values["workq_key"] == values["rate_limit"] == ""
    assert values["acp_wake_commands"] == "aid://x/a"
    assert values["artifact_roots"] == "/a, /b"
    assert values["exchange"] == "false"
    assert {setting.origin for setting in listed if setting.name == "mesh_token"} == {"option"}
    assert listed[0].origin != "default"
    assert listed[-1].origin == "default"
