"""`cacp thread` reads outputs and explains codes."""

import json
from pathlib import Path

from tests.cli.threader import invoke
from tests.threader.projects import heal_block, result_block


def test_parse_commands(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(result_block("A") * 2 + heal_block())
    parsed = json.loads(invoke("parse-result", log, "--task", "A", "--json").output)
    assert parsed["ok"]
    assert "the last one counts" in parsed["warnings"][0]
    assert '"task_id": "A"' in invoke("parse-result", log, "--task", "A").output
    wrong = invoke("parse-result", log, "--task", "B")
    assert wrong.exit_code == 1
    assert "SCHEMA_VIOLATION" in wrong.output
    assert json.loads(invoke("parse-heal", log, "--json").output)["value"]["decision"] == "RETRY"
    log.write_text("nothing")
    failed = json.loads(invoke("parse-heal", log, "--json").output)
    assert failed["code"] == "NO_SENTINEL"


def test_explain() -> None:
    assert "fenced block" in invoke("explain", "no_sentinel").output
    assert "ESCALATED" in json.loads(invoke("explain", "--json").output)
    assert invoke("explain", "nonsense").exit_code == 2
    assert "not one of NO_SENTINEL" in invoke("explain", "nonsense", "--json").stdout
