"""`cacp inbox` and `cacp send` (acp-canonical §11)."""

import json
import threading

from tests.cli.run import cacp, on_terminal
from tests.support.mail_agent import MailAgent
from tests.support.node import Node, free_port


def test_mail_from_shell_to_shell(node: Node, anna: MailAgent, bert: MailAgent) -> None:
    sent = cacp(
        "send", bert.id, "-m", "the users table", "--type", "status.blocked", "--priority", "high",
        "--payload", '{"blocked_on": "no\\u001b[31m schema"}', "--topic", "db",
        url=node.url, key=anna.key,
    )  # fmt: skip
    assert sent.exit_code == 0, sent.output
    id = sent.stdout.strip()
    shown = cacp("inbox", url=node.url, key=bert.key)
    assert id in shown.stdout
    assert "```untrusted" in shown.stdout
    assert "\x1b" not in shown.stdout
    listed = json.loads(cacp("inbox", "--json", url=node.url, key=bert.key).stdout)
    (message,) = listed["messages"]
    assert (message["topic"], message["priority"]) == ("db", "high")
    assert message["payload"]["summary"] == "the users table"
    acked = cacp("inbox", "--ack", id, url=node.url, key=bert.key)
    assert "No messages wait for you" in acked.stdout
    wrong = cacp("inbox", "--ack", "no-such-id", "--wait", "0.05", url=node.url, key=bert.key)
    assert (wrong.exit_code, "no-such-id" in wrong.stderr) == (1, True)
    assert id in cacp("inbox", "--all", url=node.url, key=bert.key).stdout
    after = cacp("inbox", "--all", "--cursor", listed["cursor"], url=node.url, key=bert.key)
    assert id not in after.stdout


def test_mail_beyond_the_limit_is_announced(node: Node, anna: MailAgent, bert: MailAgent) -> None:
    for _ in range(2):
        anna.send(bert)
    listed = json.loads(cacp("inbox", "--limit", "1", "--json", url=node.url, key=bert.key).stdout)
    shown = cacp("inbox", "--limit", "1", url=node.url, key=bert.key).stdout
    assert f"There are more: `cacp inbox --cursor {listed['cursor']}`" in shown
    rest = cacp("inbox", "--cursor", listed["cursor"], url=node.url, key=bert.key).stdout
    assert "There are more" not in rest


def test_waiting_ends_when_something_comes(node: Node, anna: MailAgent, bert: MailAgent) -> None:
    later = threading.Timer(0.3, lambda: anna.send(bert))
    later.start()
    found = cacp("inbox", "--wait", "20", "--json", url=node.url, key=bert.key)
    later.join()
    assert len(json.loads(found.stdout)["messages"]) == 1
    empty = cacp("inbox", "--wait", "0.05", "--json", url=node.url, key=anna.key)
    assert json.loads(empty.stdout)["messages"] == []


def test_what_waits_for_a_human_says_so(node: Node, anna: MailAgent, bert: MailAgent) -> None:
    sent = cacp("send", bert.id, "-m", "m", "--gate", url=node.url, key=anna.key)
    assert sent.exit_code == 0
    assert "cacp approve" in sent.stderr


def test_what_is_refused_is_one_line(node: Node, anna: MailAgent) -> None:
    refused = cacp("send", "aid://example.com/nobody", "-m", "m", url=node.url, key=anna.key)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    wrong = cacp("send", anna.id, "-m", "m", "--payload", "[1]", url=node.url, key=anna.key)
    assert wrong.exit_code == 2
    gone = cacp("inbox", url=f"http://127.0.0.1:{free_port()}")
    assert gone.exit_code == 3


def test_on_a_terminal_mail_is_for_people(node: Node, anna: MailAgent, bert: MailAgent) -> None:
    cacp("send", bert.id, "-m", "It \x1b[31mruns", url=node.url, key=anna.key)
    shown = on_terminal("inbox", url=node.url, key=bert.key)
    assert "It runs\n" in shown
    assert "  done     cacp inbox --ack " in shown
    assert "untrusted" not in shown
    assert "\x1b[31m" not in shown
