"""The order in which several workers run the tests: long ones first.

`--dist worksteal` gives each worker a run of tests of equal count, and who is done steals from the
end of the others'. A long test that comes last keeps one worker busy while all others are idle.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

LONG = (
    "tests/feature/test_feature.py",
    "tests/byzantine/test_processes.py",
    "tests/scenarios/test_clocks.py",
    "tests/acceptance/test_night.py",
    "tests/acceptance/test_threader.py",
    "tests/acceptance/test_threader_crash.py",
    "tests/deploy/test_dist.py",
    "tests/faults/test_power_loss.py",
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
"""Files of tests that take several seconds each, the longest first."""

Test = TypeVar("Test")


def long_first(tests: Sequence[tuple[Path, Test]], workers: int, root: Path) -> list[Test]:
    """The tests of each file together, and the long files dealt to the beginning of each worker's
    share."""
    rank = {root / name: place for place, name in enumerate(LONG)}
    shares: list[list[Test]] = [[] for _ in range(workers)]
    for path, test in tests:
        if path in rank:
            shares[rank[path] % workers].append(test)
    others = [test for path, test in tests if path not in rank]
    ordered: list[Test] = []
    for number, share in enumerate(shares):
        # As many as xdist gives this worker of what is left.
        size = (len(tests) - len(ordered)) // (workers - number)
        filling = max(0, size - len(share))
        ordered += share + others[:filling]
        del others[:filling]
    return ordered + others
