"""`cacp approve` and `cacp acp export`."""

import json
from pathlib import Path

from tests.cli.run import cacp
from tests.support.mail_agent import MailAgents
from tests.support.node import Node


def test_a_human_approves_and_all_is_exported(
    node: Node, agents: MailAgents, tmp_path: Path
) -> None:
    anna, bert, human = agents("anna"), agents("bert"), agents("dora", human=True)
    sent = anna.send(bert, policy={"human_gate": "required"})["message"]["id"]
    refused = cacp("approve", sent, url=node.url, key=anna.key)
    assert refused.exit_code != 0
    assert "Only a human" in refused.stderr
    done = cacp("approve", sent, url=node.url, key=human.key)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("approved: ")
    assert bert.received() == [sent]
    other = anna.send(bert, policy={"human_gate": "required"})["message"]["id"]
    shown = cacp("approve", other, "--refuse", "--json", url=node.url, key=human.key)
    assert json.loads(shown.stdout)["outcome"] == "refused"

    folder = tmp_path / "mail"
    for _ in range(2):
        exported = cacp("acp", "export", str(folder), "--json", db=str(node.db))
        assert exported.exit_code == 0, exported.stderr
    ids = [
        json.loads(line)["message"]["id"]
        for line in (folder / "messages.jsonl").read_text().splitlines()
    ]
    assert {sent, other} <= set(ids)
    assert json.loads(exported.stdout)["lines"]["messages"] == 0


def test_a_human_finds_what_waits(node: Node, agents: MailAgents) -> None:
    anna, bert, human = agents("anna"), agents("bert"), agents("dora", human=True)
    said = {"summary": "the\u001b[31m red button"}
    sent = anna.send(bert, policy={"human_gate": "required"}, payload=said)["message"]["id"]
    shown = cacp("approve", url=node.url, key=human.key)
    assert shown.exit_code == 0, shown.stderr
    assert f"  cacp approve {sent}\n" in f"{shown.stdout}\n"
    assert f"from {anna.id} to {bert.id}" in shown.stdout
    assert "red button\n  message of " in shown.stdout
    assert "\x1b" not in shown.stdout
    listed = json.loads(cacp("approve", "--json", url=node.url, key=human.key).stdout)
    assert sent in [one["id"] for one in listed]
    for one in listed:
        cacp("approve", one["id"], "--refuse", url=node.url, key=human.key)
    empty = cacp("approve", url=node.url, key=human.key)
    assert empty.stdout == "Nothing waits for approval.\n"
    assert cacp("approve", "--refuse", url=node.url, key=human.key).exit_code == 2
    assert "Only a human" in cacp("approve", url=node.url, key=anna.key).stderr
