"""The tables of `cacp peers`."""

from typing import Any

import pytest

from cli.peers_table import print_peers

PEER: dict[str, Any] = {
    "agentId": "aid://example.com/beta",
    "endpoint": "http://beta.example",
    "trust": "verified",
}


def test_a_peer_that_was_not_asked_yet_has_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    print_peers([PEER], {})
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == [PEER["agentId"], "-", PEER["endpoint"], "verified", *"------"]


def test_clocks_errors_and_what_was_refused_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    refused = {"entity": "contract", "entityId": "c", "projectId": "p", "tries": 2, "reason": "no"}
    sync = {"health": "up", "lagSeconds": 1.25, "undeliveredEntities": [refused]}
    sync["lastError"] = "can't be reached"
    near = {**PEER, "sync": sync, "clockAheadSeconds": 2, "equivocations": 1}
    print_peers([near, {**PEER, "clockAheadSeconds": -3}], {"p": "Coupons"})
    shown = capsys.readouterr().out
    rows = shown.splitlines()
    assert "1.2 s  ok " in rows[1]
    assert "can't be reached; it has contradicted itself (1): see `cacp peers evidence`" in rows[1]
    assert "-3 s" in rows[2]
    assert rows[3] == ""
    assert rows[5].split() == [PEER["agentId"], "contract", "c", "Coupons", "2", "no"]


def test_without_peers_it_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_peers([], {})
    assert capsys.readouterr().err.startswith("There are no peers: `cacp peers add URL`")
