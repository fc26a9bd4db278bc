"""`cacp search` and `cacp reindex`."""

import json
from pathlib import Path

from tests.cli.run import cacp
from tests.support.located import prepare
from tests.support.node import Node
from tests.support.team import Team
from tests.support.waiting import eventually


def test_it_finds_what_is_indexed_and_builds_the_index_anew(node: Node, team: Team) -> None:
    contract = team.proposed(name="shellQuokka")

    def quokka() -> list[str]:
        done = cacp("search", "quokka", "--kind", "contract", "--json", url=node.url)
        assert done.exit_code == 0, done.stderr
        return [hit["contractId"] for hit in json.loads(done.stdout)["hits"]]

    eventually(lambda: quokka() == [contract])
    shown = cacp("search", "quokka", "--project", team.project, url=node.url)
    assert f"cacp show {contract}" in shown.stdout
    nothing = cacp("search", "--", "quokka", "-shell", url=node.url)
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "Nothing has these words" in nothing.stderr


def test_wrong_input_is_refused(node: Node) -> None:
    assert cacp("search", "a", "--kind", "file", url=node.url).exit_code == 2
    done = cacp("search", "--", "-draft", url=node.url)
    assert done.exit_code == 1
    assert "must contain a word" in done.stderr


def test_reindexing_queues_everything(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    prepare(path)
    done = cacp("reindex", "--db", str(path))
    assert done.exit_code == 0
    assert "about 0 documents" in done.stderr
