"""The order in which several workers run the tests: long ones first.

`--dist worksteal` gives each worker a run of tests of equal count, and who is done steals from the
end of the others'. A long test that comes last keeps one worker busy while all others are idle.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

LONG = (
    "tests/page",
    "tests/feature/test_feature.py",
    "tests/replicas/test_failures.py",
    "tests/replicas/test_planted.py",
    "tests/replicas/test_runs.py",
    "tests/byzantine/test_processes.py",
    "tests/scenarios/test_clocks.py",
    "tests/acceptance/test_night.py",
    "tests/acceptance/test_threader.py",
    "tests/acceptance/test_threader_crash.py",
    "tests/deploy/test_dist.py",
    "tests/faults/test_power_loss.py",
    "tests/cli/test_cluster.py",
    "tests/cli/test_cluster_nodes.py",
    "tests/cli/test_mesh.py",
    "tests/server/mcp_tools/test_endpoint.py",
    "tests/deploy/test_container.py",
    "tests/faults/test_failing_disk.py",
    "tests/server/workers/test_webhook.py",
    "tests/acceptance/test_story.py",
    "tests/scenarios/test_attention.py",
    "tests/acceptance/test_fuzz.py",
    "tests/architecture/test_sizes.py",
)
"""Files, and folders, of tests that take several seconds each, the longest first."""

Test = TypeVar("Test")


def long_first(tests: Sequence[tuple[Path, Test]], workers: int, root: Path) -> list[Test]:
    """The tests of each file together, and the long files dealt to the beginning of each worker's
    share."""
    shares: list[list[Test]] = [[] for _ in range(workers)]
    others: list[Test] = []
    for path, test in tests:
        rank = _rank(path, root)
        (others if rank is None else shares[rank % workers]).append(test)
    ordered: list[Test] = []
    for number, share in enumerate(shares):
        # As many as xdist gives this worker of what is left.
        size = (len(tests) - len(ordered)) // (workers - number)
        filling = max(0, size - len(share))
        ordered += share + others[:filling]
        del others[:filling]
    return ordered + others


@cache
def _rank(path: Path, root: Path) -> int | None:
    """Its place among the long ones."""
    for place, name in enumerate(LONG):
        if path.is_relative_to(root / name):
            return place
    return None
