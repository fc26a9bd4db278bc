"""`cacp next` against a node: what it shows is what closes the item."""

import json
import shlex

from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.team import FRONTEND, Team


def test_what_waits_is_shown_and_its_command_closes_it(node: Node, team: Team) -> None:
    name = team.frontend("project/get")["name"]
    where = ("--project", team.project)
    empty = cacp("next", *where, "--exit-code", url=node.url, key=team.key)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert empty.stderr == "Nothing waits for you.\n"
    contract = team.proposed(name="GET /next")
    waiting = cacp("next", *where, "--exit-code", url=node.url, key=team.key)
    assert waiting.exit_code == 4
    assert "GET /next" in waiting.stdout
    assert name in waiting.stdout
    [line] = [line for line in waiting.stdout.splitlines() if "contract/respond" in line][:1]
    words = [word.replace("action=…", "action=agree") for word in shlex.split(line)[1:]]
    done = cacp(*(word for word in words if "…" not in word), url=node.url, key=team.key)
    assert done.exit_code == 0, done.stderr
    listed = json.loads(cacp("next", *where, "--json", url=node.url, key=team.key).stdout)
    assert "respond" not in listed["counts"]
    assert {item["subject"]["id"] for item in listed["items"]} <= {contract}


def test_without_a_key_it_says_for_whom_nothing_waits(node: Node) -> None:
    repos = [{"name": "quiet", "role": "r", "language": "l"}]
    made = node.call("cacp/project/create", name="Quiet", objective="o", repos=repos)
    node.call("cacp/project/join", projectId=made["projectId"], repoName="quiet")
    empty = cacp("next", "--project", made["projectId"], url=node.url)
    assert f"Nothing waits for the own agent of the node at {node.url}" in empty.stderr
    assert "CACP_KEY" in empty.stderr


def test_only_what_a_repo_must_do(node: Node, team: Team) -> None:
    team.proposed(name="GET /repo")
    where = ("--project", team.project, "--repo")
    own = cacp("next", *where, FRONTEND, "--json", url=node.url, key=team.key)
    listed = json.loads(own.stdout)
    assert listed["total"] == len(listed["items"]) == sum(listed["counts"].values()) == 1
    id = listed["items"][0]["repoId"]
    same = cacp("next", *where, id, "--json", url=node.url, key=team.key)
    assert json.loads(same.stdout) == listed
    other = cacp("next", *where, "nothing", url=node.url, key=team.key)
    assert other.exit_code == 1
    assert f"no repo here is named nothing; something waits in: backend-api, {FRONTEND}" in (
        other.stderr
    )
    urgent = cacp("next", *where, FRONTEND, "--urgent", url=node.url, key=team.key)
    assert (urgent.exit_code, urgent.stdout) == (0, "")


def test_what_is_open_between_all_agents(node: Node, team: Team) -> None:
    where = ("--everyone", "--project", team.project)
    empty = cacp("next", *where, "--exit-code", url=node.url, key=team.key)
    assert (empty.exit_code, empty.stdout) == (0, "")
    team.proposed(name="GET /everyone")
    shown = cacp("next", *where, "--exit-code", url=node.url)
    assert shown.exit_code == 4
    heads = ["NEEDS", "WHAT", "PROJECT", "MUST", "ACT", "BLOCKS", "AGE"]
    assert shown.stdout.splitlines()[0].split() == heads
    assert "respond to GET /everyone v1" in shown.stdout
    assert FRONTEND in shown.stdout
    assert "0 need a person, 0 waited too long, 1 in time" in shown.stderr
    listed = json.loads(cacp("next", *where, "--json", url=node.url, key=team.key).stdout)
    assert (listed["total"], "next" in listed) == (1, False)
    wrong = cacp("next", *where, "--urgent", url=node.url, key=team.key)
    assert wrong.exit_code == 2
    assert "neither --repo nor --urgent" in wrong.stderr
