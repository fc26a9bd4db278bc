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
        "node": {
            "url": "http://127.0.0.1:9",
            "project_id": "p",
            "agent_id": "a",
            "key_env": "NO_SUCH_KEY",
        },
    }
    texts = [finding.text for finding in examine(load_project(bench.save())) if not finding.ok]
    assert texts == [
        "worker: claude: cannot find the executable /no/claude",
        "isolation worktree: the workspace is not a git tree",
        "node: NO_SUCH_KEY is not set",
        "node: it cannot be reached: ConnectError",
    ]
    bench.manifest["policy"] = {"budget": {"tokens": 5}}
    bench.manifest["worker"] = {"adapter": "agent", "command": ["/bin/sh"]}
    told = [finding.text for finding in examine(load_project(bench.save()))]
    assert any("worker agent with the output text reports neither" in text for text in told)
    bench.manifest["worker"] = {"adapter": "command", "command": ["/bin/sh"]}
    told = [finding.text for finding in examine(load_project(bench.save()))]
    assert "policy.budget: 5 tokens" in told
    bench.manifest["worker"] = None
    assert "must name one" in examine(load_project(bench.save()))[2].text
