"""`cacp project`: archive, unarchive and delete, with a question at a terminal."""

import json
import os
import pty
import subprocess
import sys

from tests.cli.run import ROOT, cacp, environment_of
from tests.support.node import AGENT, Node
from tests.support.team import Team


def made(node: Node, name: str) -> str:
    return str(node.call("cacp/project/create", name=name, objective="o")["projectId"])


def asked(node: Node, answer: str, *words: str) -> tuple[int, str]:
    """The exit status of a command at a terminal, and what it printed."""
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    with subprocess.Popen(
        [sys.executable, "-m", "cli.main", *words],
        env=environment_of(url=node.url) | {"TERM": "dumb"},
        cwd=ROOT,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as command:
        printed, _ = command.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    return command.returncode, printed


def test_a_project_is_archived_and_comes_back(node: Node) -> None:
    project = made(node, "Shelf")
    done = cacp("project", "archive", "Shelf", url=node.url)
    assert done.stdout == f"Project Shelf ({project}) is archived.\n"
    assert project not in cacp("projects", url=node.url).stdout
    listed = cacp("projects", "--archived", url=node.url).stdout
    assert any(project in line and "archived" in line for line in listed.splitlines())
    back = cacp("project", "unarchive", project[:18], "--json", url=node.url)
    assert json.loads(back.stdout)["status"] == "active"
    assert project in cacp("projects", url=node.url).stdout


def test_a_refused_operator_is_told_where_the_key_is_found(node: Node, team: Team) -> None:
    node.call("cacp/project/create", key=team.key, name="Theirs", objective="o")
    refused = cacp("project", "archive", "Theirs", url=node.url)
    assert refused.exit_code == 1
    assert "You can't archive project Theirs: only the agent that created it" in refused.stderr
    assert "As the operator, run it in the node's folder, or name its database" in refused.stderr
    with_key = cacp("project", "archive", "Shelf", url=node.url, key=team.key)
    assert "As the operator" not in with_key.stderr


def test_deleting_is_final_so_it_asks(node: Node) -> None:
    project = made(node, "Doomed")
    unasked = cacp("project", "delete", "Doomed", url=node.url)
    assert (unasked.exit_code, "give --yes" in unasked.stderr) == (2, True)
    status, printed = asked(node, "n\n", "project", "delete", "Doomed")
    assert (status, "nothing was changed" in printed) == (1, True)
    assert f"Delete project Doomed ({project}) with 0 contracts for good" in printed
    done = cacp("project", "delete", "Doomed", "--yes", url=node.url)
    assert f"Project Doomed ({project}) is deleted.\nRemoved here: contracts 0" in done.stdout
    again = cacp("project", "delete", project, "--yes", url=node.url)
    assert again.exit_code == 1
    assert f"Project Doomed ({project}) was deleted by {AGENT} at 20" in again.stderr


def test_a_name_that_several_have_is_not_enough(node: Node) -> None:
    ids = [made(node, "Twice") for _ in range(2)]
    wrong = cacp("project", "archive", "Twice", url=node.url)
    assert (wrong.exit_code, "2 projects are named Twice: " in wrong.stderr) == (1, True)
    assert all(project in wrong.stderr for project in ids)
    none = cacp("project", "archive", "nothing like it", url=node.url)
    assert (none.exit_code, "no project here is named nothing like it" in none.stderr) == (1, True)


def test_what_verifies_new_versions_is_set_by_name(node: Node) -> None:
    project = made(node, "Proofs")
    done = cacp("project", "verification", "Proofs", "receipt_both", url=node.url)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (
        f"In project Proofs ({project}) new versions are verified by a runner's receipts for each "
        "provider and consumer.\n"
    )
    assert (
        "a runner's receipts for each provider and consumer"
        in cacp("show", "Proofs", url=node.url).stdout
    )
    answer = cacp("project", "verification", "Proofs", "independent", "--json", url=node.url)
    assert answer.exit_code == 1, "by the node's own agent, it is less"
    assert "less proof" in answer.stderr
