"""The help names every agent that can be connected."""

from cli.connect_agents import AGENTS
from cli.connect_options import NAMES
from tests.cli.run import cacp


def test_help_names_every_agent_and_option() -> None:
    assert NAMES.replace(" or ", ", ").split(", ") == list(AGENTS)
    shown = cacp("connect", "--help").stdout
    for option in ("--repo", "--agent-id", "--url", "--db", "--key-file", "--dry-run", "--yes"):
        assert option in shown
