"""`cacp comply model` as a user meets it; `tests/comply/model/test_server.py` asks it."""

import json
import socket
from pathlib import Path

from tests.cli.run import cacp


def test_the_shipped_script_is_printed() -> None:
    shown = cacp("comply", "model", "--print-script")
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["rules"]


def test_a_model_that_cannot_start_says_why(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    done = cacp("comply", "model", "--script", str(file))
    assert (done.exit_code, done.stderr) == (
        2,
        f"cacp: can't read {file}: No such file or directory\n",
    )
    file.write_text('{"rules": [], "otherwise": {}}')
    done = cacp("comply", "model", "--script", str(file))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"cacp: {file}: otherwise: a step has exactly one of")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = cacp("comply", "model", "--port", port)
        assert done.exit_code == 2
        assert f"can't listen on 127.0.0.1:{port}: Address already in use" in done.stderr
    done = cacp("comply", "model", "--port", "0", "--log", str(tmp_path / "no" / "log"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "can't write" in done.stderr
