"""A node whose push channels are all on, and commands that wake agents."""

import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from schemas.base import iso
from server.store.database import connect
from tests.mail import Agent
from tests.node import Node

WAKE_SECONDS = 2.0
ATTEMPTS = 8
WAKE = """
import json, os, subprocess, sys, time
how, folder = sys.argv[1:]
told = json.load(sys.stdin)
told |= {name: value for name, value in os.environ.items() if name.startswith(("ACP_", "CACP_"))}
if how in ("hangs", "leaves"):
    # A child of its own, which holds on to what it inherits.
    told["child"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid
with open(f"{folder}/{how}.jsonl", "a") as log:
    log.write(json.dumps(told) + "\\n")
if how == "hangs":
    time.sleep(60)
sys.exit(3 if how == "fails" else 0)
"""
HOWS = ("wakes", "hangs", "fails", "leaves")


class Pushing(Node):
    """Each of `HOWS` is an agent whose command does that, and writes down what it was told."""

    def __init__(self, folder: Path, **settings: object) -> None:
        script = folder / "wake.py"
        script.write_text(WAKE)
        commands = {
            sleeper_id(how): [sys.executable, str(script), how, str(folder)] for how in HOWS
        }
        commands[sleeper_id("missing")] = [str(folder / "there-is-none")]
        given = {
            "acp_session_injection": True,
            "acp_channel_notify": True,
            "acp_wake": True,
            "acp_wake_commands": json.dumps(commands),
            "acp_wake_seconds": WAKE_SECONDS,
            "acp_webhook_seconds": 1,
            "acp_push_retry_seconds": 0.05,
            "acp_push_attempts": ATTEMPTS,
            "acp_bench_unlimited": True,
        }
        super().__init__(folder, **given | settings)

    def sleeper(self, how: str) -> Agent:
        """An agent that is woken by a command."""
        agent_id = sleeper_id(how)
        return Agent(self, agent_id, self.key(agent_id, "mail"))

    def told(self, how: str) -> list[dict[str, Any]]:
        """What the command of an agent was told, each time that it ran."""
        log = self.folder / f"{how}.jsonl"
        if not log.exists():
            return []
        return [json.loads(line) for line in log.read_text().splitlines()]

    def lapse(self, agent: Agent, channel: str) -> None:
        """End the leases on what was pushed to an agent, as if their time were over."""
        with closing(connect(self.db)) as db:
            db.execute(
                "UPDATE delivery_log SET due_at = ? WHERE due_at IS NOT NULL AND recipient = ?"
                " AND channel = ?",
                (iso(time.time_ns() // 1000), agent.address, channel),
            )

    def pushed(self, agent: Agent, channel: str) -> list[tuple[Any, ...]]:
        """Status, pushes, failures, whether there is more to do, and error of each push."""
        return self.query(
            "SELECT status, pushes, failures, due_at IS NOT NULL, error FROM delivery_log"
            " WHERE recipient = ? AND channel = ? ORDER BY id",
            agent.address,
            channel,
        )


def sleeper_id(how: str) -> str:
    return f"aid://example.com/{how}@1.0.0"
