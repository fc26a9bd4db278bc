"""What open pages look again for, beside the changes."""

import itertools
from types import SimpleNamespace
from typing import Any

from server.domain.agent_list import AWAKE
from server.page.outside import watch_outside


def test_it_changes_with_who_is_awake_with_the_peers_and_with_failing_loops() -> None:
    time = [10 * AWAKE]
    standings: dict[str, Any] = {}
    node: Any = SimpleNamespace(last_calls={"anna": time[0]})
    loops: Any = SimpleNamespace(failing=[])
    status: Any = SimpleNamespace(standings=standings.copy)
    look = watch_outside(node, lambda: time[0], status, loops)
    seen = [look()]
    time[0] += AWAKE
    assert look() == seen[0]
    time[0] += 1
    seen.append(look())
    node.last_calls["anna"] = time[0]
    assert look() == seen[0], "awake again"
    standings["beta"] = ("up", True)
    seen.append(look())
    loops.failing = ["mail"]
    seen.append(look())
    assert all(before != after for before, after in itertools.pairwise(seen))
