"""A run that reports to a real node (CACP 2.0 "Implementation Methods")."""

from pathlib import Path

import pytest

from tests.support.mail_agent import MailAgent
from tests.support.team import AGENT, Team
from tests.threader.projects import Bench, heal_block, result_block, write
from threader.drive import drive


def test_a_contract_is_implemented_and_verified_by_a_run(
    tmp_path: Path, team: Team, anna: MailAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CACP_KEY", raising=False)
    contract = team.agreed()
    team.frontend("implementation/complete", contractId=contract, files=["src/user.ts"])
    bench = Bench(tmp_path / "p", [{"id": "A", "contract_id": contract}, "B"])
    bench.manifest["node"] = {
        "url": team.node.url,
        "project_id": team.project,
        "agent_id": AGENT,
        "escalate_to": anna.id,
    }
    bench.answer("A", result_block("A", writes=[write("src/user.py", "x = 1\n")]))
    bench.answer("B", result_block("B", status="FAILED", summary="the same"))
    bench.answer("healer", heal_block(learned_rule="Say how."))
    code, _ = drive(bench.open(), plain=True, compat=None, as_json=False)
    assert code == 1, "B is escalated"
    found = team.contract(contract)
    assert found["status"] == "verified"
    assert "src/user.py" in str(found["implementations"])
    packets = team.backend("context/list")["packets"]
    assert {packet["type"] for packet in packets} == {"decision", "implementation_status"}
    assert not (bench.state_dir / "outbox.refused.jsonl").exists()
    mails = anna.inbox()["messages"]
    (alert,) = [mail for mail in mails if mail["topic"] != "run run-1 completed"]
    assert len(mails) == 2, "and the run's end"
    assert (alert["type"], alert["topic"]) == ("status.blocked", "task B escalated")
    assert alert["payload"]["details"]["status"] == "escalated"
