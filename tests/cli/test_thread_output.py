"""What the commands of `cacp thread` share."""

import json
from pathlib import Path

from tests.cli.threader import bench_of, invoke


def test_mistakes_have_code_2_and_no_traceback(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    path = bench.save()
    for verb, target in (("status", path), ("resume", path), ("run", path.with_name("none"))):
        result = invoke(verb, target)
        assert result.exit_code == 2
        assert "cacp thread: " in result.output
        assert "Traceback" not in result.output
    assert invoke("run", path).exit_code == 0
    again = invoke("run", path, "--json")
    assert again.exit_code == 2
    assert "--fresh" in json.loads(again.output)["problems"][0]
    assert invoke("run", path, "--fresh").exit_code == 0
