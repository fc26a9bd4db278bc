"""The file of a runner's keys."""

from dataclasses import replace
from pathlib import Path

import pytest

from peers.signing import verify
from proof.runner_key import RunnerKeys, UnusableRunnerKey

KEYS = RunnerKeys.new("aid://example.com/ci@1.0.0", "api", "cacp_sk_live_x")


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "runner.json"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_what_is_written_is_read(tmp_path: Path) -> None:
    read = RunnerKeys.read(written(tmp_path, KEYS.text()))
    assert read == KEYS
    signature = read.signing.sign(b"text")
    assert verify(KEYS.signing.public, b"text", signature)


def test_each_runner_has_a_signing_key_of_its_own() -> None:
    other = RunnerKeys.new(KEYS.agent_id, KEYS.repo, KEYS.api_key)
    assert other.signing.public != KEYS.signing.public


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"agent_id": "a"}',
        KEYS.text().replace("seed", "sead"),
        replace(KEYS, seed="short").text(),
        replace(KEYS, seed="=" * 44).text(),
        KEYS.text().replace('"api"', "1"),
    ],
)
def test_another_file_holds_no_runner(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnusableRunnerKey, match="cacp keys create --runner"):
        RunnerKeys.read(written(tmp_path, text))


def test_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(UnusableRunnerKey, match="open to other users"):
        RunnerKeys.read(written(tmp_path, KEYS.text(), 0o644))
    with pytest.raises(UnusableRunnerKey, match="No such file"):
        RunnerKeys.read(tmp_path / "nothing")
