"""A table comes into a TOML file and goes again; comments, order and all else stay."""

import doctest
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import toml_edit
from cli.toml_edit import section, table, with_table, without_table

AT = ("mcp_servers", "cacp")
BODY = 'command = "cacp"\nargs = ["mcp"]\n'
PARTS = (
    "# first\nmodel = 'x' # why\n",
    "\n[mcp_servers.docs]\ncommand = 'docs'\n",
    "\n# above\n[mcp_servers.docs.env]\nA = '''\n[mcp_servers.no]\n'''\n",
    "[[history]]\nitems = [\n  [1, 2],\n]\n",
    '\n[projects."/a/b"]\ntrust_level = "trusted"',
)


def test_the_examples_hold() -> None:
    assert doctest.testmod(toml_edit).failed == 0


@given(st.integers(0, len(PARTS)), st.sampled_from(["", "\n", "# end\n"]))
def test_only_the_table_comes_and_goes(count: int, end: str) -> None:
    text = "".join(PARTS[:count]) + end
    made = with_table(text, AT, BODY)
    assert made.startswith(text)
    assert table(made, AT) == {"command": "cacp", "args": ["mcp"]}
    assert with_table(made, AT, BODY) == made
    assert without_table(made, AT).rstrip("\n") == text.rstrip("\n")
    assert section(made, AT) == BODY
    expected = tomllib.loads(text)
    expected.setdefault("mcp_servers", {})["cacp"] = table(made, AT)
    assert tomllib.loads(made) == expected


def test_what_follows_the_table_stays_with_its_comment() -> None:
    text = (
        "a = 1\n\n[mcp_servers.cacp] # ours\nx = 1\n[mcp_servers.cacp.env]\nB = '2'\n\n# z\n[z]\n"
    )
    assert without_table(text, AT) == "a = 1\n\n# z\n[z]\n"
    assert with_table(text, AT, BODY) == f"a = 1\n\n# z\n[z]\n\n[mcp_servers.cacp]\n{BODY}"
    assert without_table("[z]\n", AT) == "[z]\n"


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { docs = { command = 'docs' } }\n",
        "mcp_servers = { cacp = { command = 'other' } }\n",
        "[mcp_servers]\ncacp = { command = 'other' }\n",
        "mcp_servers = 1\n",
    ],
)
def test_another_form_is_refused_instead_of_destroyed(text: str) -> None:
    with pytest.raises(ValueError, match=r"\[mcp_servers\.cacp\]"):
        with_table(text, AT, BODY)


def test_what_is_no_toml_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        with_table("a = 1\nb\n", AT, BODY)
    with pytest.raises(ValueError, match="line 1"):
        without_table("=", AT)


def test_a_text_of_great_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="less depth"):
        with_table(f"a = {'[' * 20_000}", ("b", "c"), "d = 2\n")
