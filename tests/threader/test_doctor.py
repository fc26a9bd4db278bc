"""Whether a manifest can be run here."""

from pathlib import Path

from tests.threader.projects import Bench
from threader.doctor import examine
from threader.load import load_project


def test_findings(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    assert all(finding.ok for finding in examine(load_project(bench.save())))
    bench.manifest |= {
        "worker": {"adapter": "claude", "command": ["/no/claude"]},
        "healer": None,
        "isolation": "worktree",
        "node": {"url": "http://n", "project_id": "p", "agent_id": "a", "key_env": "NO_SUCH_KEY"},
    }
    texts = [finding.text for finding in examine(load_project(bench.save())) if not finding.ok]
    assert texts == [
        "worker: claude: there is no executable /no/claude",
        "isolation worktree: the workspace is no git tree",
        "node: NO_SUCH_KEY is not set",
    ]
    bench.manifest["worker"] = None
    assert "must name one" in examine(load_project(bench.save()))[2].text
