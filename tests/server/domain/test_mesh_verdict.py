"""Whether the nodes of a mesh hold the same, in a sentence."""

from dataclasses import replace

import pytest

from server.domain.mesh_verdict import NOT_COMPARED, NodeCompared, equality, standing

BETA = NodeCompared("aid://example.com/beta@1.0.0", True, 2_000, is_equal=True)
GAMMA = NodeCompared("aid://example.com/gamma@1.0.0", True, 1_000, is_equal=True)
DELTA = NodeCompared("aid://example.com/delta@1.0.0", True, 3_000, is_equal=True)


@pytest.mark.parametrize(
    ("nodes", "state", "sentence"),
    [
        ([], "alone", "This node is alone: no other node of a mesh is registered here"),
        ([BETA], "equal", "The mesh is equal: beta holds the same"),
        ([BETA, GAMMA], "equal", "The mesh is equal: all 3 nodes hold the same"),
        (
            [BETA, replace(GAMMA, backlog=2)],
            "behind",
            "The mesh was equal when last compared; on the way: 2 changes to gamma",
        ),
        (
            [replace(BETA, is_up=False), GAMMA],
            "unknown",
            "Equal with 1 of 2 other nodes; beta does not answer",
        ),
        (
            [replace(BETA, compared_at=None, is_equal=False), GAMMA],
            "unknown",
            "Equal with 1 of 2 other nodes; beta is yet to be compared",
        ),
        (
            [
                replace(BETA, is_equal=False, differing={"contract": 2, "context": 1, "file": 1}),
                replace(GAMMA, is_equal=False),
                replace(DELTA, is_up=False),
            ],
            "differs",
            "The mesh was not equal when last compared: beta differed in 1 context packet, "
            "2 contracts and 1 file; gamma lacked something that this node holds",
        ),
    ],
)
def test_the_sentence(nodes: list[NodeCompared], state: str, sentence: str) -> None:
    judged = equality(nodes, foreign=0, deferred=0)
    assert (judged.state, judged.sentence) == (state, sentence)


def test_it_is_as_old_as_the_oldest_comparison() -> None:
    assert equality([BETA, GAMMA], foreign=0, deferred=0).compared_at == 1_000
    assert equality([], foreign=0, deferred=0).compared_at is None


def test_what_it_does_not_speak_of_is_named() -> None:
    assert equality([BETA], foreign=0, deferred=0).limits == [NOT_COMPARED]
    limits = equality([BETA], foreign=2, deferred=1).limits
    assert limits[0] == NOT_COMPARED
    assert limits[1].startswith("2 foreign peers are not compared")
    assert limits[2].startswith("1 message of peers waits on this node")


def test_many_nodes_are_counted_and_hostile_names_stay_on_one_line() -> None:
    nodes = [
        replace(BETA, agent_id=f"aid://example.com/node{number}\n{'x' * 500}@1", is_up=False)
        for number in range(50)
    ]
    sentence = equality(nodes, foreign=0, deferred=0).sentence
    assert "and 47 more don't answer" in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400


@pytest.mark.parametrize(
    ("is_mesh", "is_up", "is_equal", "backlog", "expected"),
    [
        (True, False, True, 0, "down"),
        (False, False, None, 0, "down"),
        (False, True, None, 3, "foreign"),
        (False, None, None, 0, "foreign"),
        (True, None, None, 0, "unknown"),
        (True, True, None, 0, "unknown"),
        (True, True, False, 0, "differs"),
        (True, True, True, 1, "behind"),
        (True, True, True, 0, "equal"),
    ],
)
def test_how_one_peer_stands(
    is_mesh: bool, is_up: bool | None, is_equal: bool | None, backlog: int, expected: str
) -> None:
    stands = standing(is_mesh=is_mesh, is_up=is_up, is_equal=is_equal, backlog=backlog)
    assert stands == expected
