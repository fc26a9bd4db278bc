"""`cacp openrpc`: the document, from the code."""

import json

from server.methods import METHODS
from tests.cli.run import process


def test_it_needs_no_node_and_names_every_method() -> None:
    done = process("openrpc")
    assert [method["name"] for method in json.loads(done.stdout)["methods"]] == list(METHODS)
