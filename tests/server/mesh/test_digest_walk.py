"""A walk down the digests costs a message for each level, not for each entity (design §7)."""

from pathlib import Path

import pytest

from peers import digest
from peers.digest import Name
from server.mesh.digest_walk import EXACTLY
from tests.server.mesh.test_anti_entropy import ENTITIES, compare


def test_equal_nodes_need_one_message(tmp_path: Path) -> None:
    calls, _ = compare(tmp_path, ENTITIES, ENTITIES)
    assert calls == ["cacp/sync/digest"]


def test_one_difference_needs_one_message_for_each_level(tmp_path: Path) -> None:
    calls, _ = compare(tmp_path, ENTITIES, ENTITIES + 1)
    assert calls == ["cacp/sync/digest"] * 4 + ["cacp/sync/pull"]


@pytest.mark.parametrize(("before", "found"), [(0, True), (EXACTLY - 1, True), (EXACTLY, False)])
def test_what_equal_sums_hide_is_found_when_its_place_has_its_turn(
    tmp_path: Path, before: int, found: bool
) -> None:
    last = digest.place_of(Name("context", "p", f"packet {ENTITIES}"))
    start = int(last, 16) - before
    calls, _ = compare(tmp_path, ENTITIES, ENTITIES + 1, exactly=start % digest.PLACES)
    assert ("cacp/sync/pull" in calls) == found
    assert calls[0] == "cacp/sync/digest"
