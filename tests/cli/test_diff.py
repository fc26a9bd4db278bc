"""`cacp diff`, against a real node."""

import json

from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.team import Team

EVIL = "POST \x1b[2Jx [red]y[/red]\u202e"


def test_diff_shows_what_changed_and_whom_it_breaks(node: Node, team: Team) -> None:
    before = {"path": "/a", "response": {"total": "number"}, "note": EVIL}
    made = team.backend("contract/propose", type="api_endpoint", name=EVIL, content=before)
    contract = made["contractId"]
    after = {**before, "response": {"total": "integer", "code": "string"}}
    team.backend("contract/update", contractId=contract, content=after)

    done = cacp("diff", contract, url=node.url)
    assert done.exit_code == 0, done.output
    for part in (
        "Version 1 → version 2",
        "for the provider breaking, for the consumer compatible",
        "$.response.code",
        "required member added",
        '-     "total": "number"',
        '+     "total": "integer",',
    ):
        assert part in done.stdout
    assert "\x1b[2J" not in done.stdout
    assert "\u202e" not in done.stdout

    wire = json.loads(
        cacp("diff", contract, "--from", "2", "--to", "1", "--json", url=node.url).stdout
    )
    assert wire["consumer"] == "breaking"

    done = cacp("diff", team.project, url=node.url)
    assert done.exit_code != 0
    assert "is a project" in done.output
