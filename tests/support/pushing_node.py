"""A node whose push channels are all on, and commands that wake agents."""

import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from schemas.base import iso
from tests.support.located import connect
from tests.support.mail_agent import MailAgent
from tests.support.node import Node

WAKE_SECONDS = 2.0
ATTEMPTS = 8
WAKE = """
import json, os, subprocess, sys, time
behaviour, folder = sys.argv[1:]
call = json.load(sys.stdin)
call |= {name: value for name, value in os.environ.items() if name.startswith(("ACP_", "CACP_"))}
if behaviour in ("hangs", "leaves"):
    # A child process that keeps the inherited descriptors open.
    call["child"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid
with open(f"{folder}/{behaviour}.jsonl", "a") as log:
    log.write(json.dumps(call) + "\\n")
if behaviour == "hangs":
    time.sleep(60)
sys.exit(3 if behaviour == "fails" else 0)
"""
WAKE_BEHAVIOURS = ("wakes", "hangs", "fails", "leaves")


class PushingNode(Node):
    """Each of `WAKE_BEHAVIOURS` is an agent whose wake command behaves so and logs its
    input."""

    def __init__(self, folder: Path, **settings: object) -> None:
        script = folder / "wake.py"
        script.write_text(WAKE)
        commands = {
            woken_agent_id(behaviour): [sys.executable, str(script), behaviour, str(folder)]
            for behaviour in WAKE_BEHAVIOURS
        }
        commands[woken_agent_id("missing")] = [str(folder / "missing-command")]
        given = {
            "acp_session_injection": True,
            "acp_channel_notify": True,
            "acp_wake": True,
            "acp_wake_commands": json.dumps(commands),
            "acp_wake_seconds": WAKE_SECONDS,
            "acp_webhook_seconds": 1,
            "acp_push_retry_seconds": 0.05,
            "acp_push_attempts": ATTEMPTS,
            "unlimited_senders": True,
        }
        super().__init__(folder, **given | settings)

    def agent_with_wake_command(self, behaviour: str) -> MailAgent:
        """An agent whose node runs a command to wake it."""
        agent_id = woken_agent_id(behaviour)
        return MailAgent(self, agent_id, self.key(agent_id, "mail"))

    def wake_calls(self, behaviour: str) -> list[dict[str, Any]]:
        """The input of each run of an agent's wake command."""
        log = self.folder / f"{behaviour}.jsonl"
        if not log.exists():
            return []
        return [json.loads(line) for line in log.read_text().splitlines()]

    def expire_leases(self, agent: MailAgent, channel: str) -> None:
        """Make the leases of an agent's pushed messages expire now."""
        with closing(connect(self.db)) as db:
            db.execute(
                "UPDATE delivery_log SET due_at = ? WHERE due_at IS NOT NULL AND recipient = ?"
                " AND channel = ?",
                (iso(time.time_ns() // 1000), agent.address, channel),
            )

    def pushed(self, agent: MailAgent, channel: str) -> list[tuple[Any, ...]]:
        """Status, pushes, failures, whether there is more to do, and error of each push."""
        return self.query(
            "SELECT status, pushes, failures, due_at IS NOT NULL, error FROM delivery_log"
            " WHERE recipient = ? AND channel = ? ORDER BY id",
            agent.address,
            channel,
        )


def woken_agent_id(behaviour: str) -> str:
    return f"aid://example.com/{behaviour}@1.0.0"
