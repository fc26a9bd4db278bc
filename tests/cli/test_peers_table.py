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
    print_peers([PEER], None, {})
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == [PEER["agentId"], "-", PEER["endpoint"], "verified", *"-------"]


def test_clocks_errors_and_what_was_refused_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    refused = {"entity": "contract", "entityId": "c", "projectId": "p", "tries": 2, "reason": "no"}
    sync = {"health": "up", "lagSeconds": 1.25, "undeliveredEntities": [refused]}
    sync["lastError"] = "can't be reached"
    near = {**PEER, "sync": sync, "clockAheadSeconds": 2, "equivocations": 1}
    print_peers([near, {**PEER, "clockAheadSeconds": -3}], None, {"p": "Coupons"})
    shown = capsys.readouterr().out
    rows = shown.splitlines()
    assert "1.2 s  ok " in rows[1]
    assert "can't be reached; it has contradicted itself (1): see `cacp peers evidence`" in rows[1]
    assert "-3 s" in rows[2]
    assert rows[3] == ""
    assert rows[5].split() == [PEER["agentId"], "contract", "c", "Coupons", "2", "no"]


def test_without_peers_it_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_peers([], {"sentence": "alone", "limits": []}, {})
    assert capsys.readouterr().err.startswith("There are no peers: `cacp peers add URL`")


def test_whether_the_mesh_is_equal_is_said_below(capsys: pytest.CaptureFixture[str]) -> None:
    sync = {"health": "up", "lagSeconds": 0, "isEqual": False, "differing": {"contract": 2}}
    verdict = {
        "sentence": "The mesh was not equal",
        "comparedAt": "2026-01-01T00:00:00Z",
        "limits": ["Mail is not compared."],
    }
    equal = {**PEER, "sync": {**sync, "isEqual": True}}
    lacking = {**PEER, "sync": {**sync, "differing": {}}}
    print_peers([{**PEER, "sync": sync}, equal, lacking], verdict, {})
    lines = capsys.readouterr().out.splitlines()
    assert "no: 2 contract" in lines[1]
    assert " yes " in lines[2]
    assert " no " in lines[3]
    assert lines[4] == ""
    assert lines[5].startswith("The mesh was not equal (compared ")
    assert lines[5].endswith(" ago).")
    assert lines[6] == "Mail is not compared."
