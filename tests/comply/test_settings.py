"""The file that names agents."""

import pytest

from comply.settings import BadSettings, agent_server

TEXT = '{"theme": 1, "agent_servers": {"echo": {"command": "python", "args": ["e.py"], "x": 1}}}'


def test_an_agent_is_read_as_editors_write_it() -> None:
    server = agent_server(TEXT, "echo")
    assert (server.command, server.args, server.env) == ("python", ["e.py"], {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the file: is not JSON"),
        ("{}", "agent_servers: required"),
        (TEXT.replace('"python"', "1"), r"agent_servers\.echo\.command: should be"),
        (TEXT.replace('"echo"', '"other"'), "no agent echo in agent_servers; there are other"),
    ],
)
def test_a_bad_file_says_where(text: str, said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        agent_server(text, "echo")
