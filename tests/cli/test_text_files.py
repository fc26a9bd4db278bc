"""Text files of a command."""

from pathlib import Path

import pytest
import typer

from cli.text_files import read_text, write_text


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "ä\n")
    assert read_text(tmp_path / "a") == "ä\n"


def test_a_file_that_cant_be_used_ends_the_command_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(typer.Exit):
        read_text(tmp_path / "bytes")
    with pytest.raises(typer.Exit):
        read_text(tmp_path / "none")
    with pytest.raises(typer.Exit):
        write_text(tmp_path / "none" / "a", "")
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [
        "it is not UTF-8",
        "No such file or directory",
        "No such file or directory",
    ]
