"""One contract of each CLI before the night."""

from pathlib import Path
from typing import Any

import pytest

from tests.threader.fakes import adapter_spec
from tests.threader.projects import Bench, heal_block, result_block
from threader.compat import read_wire
from threader.doctor import DoctorFinding
from threader.load import load_project
from threader.probe import TASK, probe_all

READY = result_block(TASK, summary="ready")
LIMIT = 120.0


def probe(bench: Bench, limit: float = LIMIT, **fields: Any) -> list[DoctorFinding]:
    bench.manifest |= fields
    return probe_all(load_project(bench.save()), limit)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "p", ["A"], healer=None)
    bench.answer(TASK, READY)
    return bench


def test_worker_and_healer_are_asked_as_in_a_run(bench: Bench) -> None:
    bench.answer("healer", heal_block(decision="NOT_FIXABLE", root_cause="ready"))
    bench.manifest |= {
        "worker": adapter_spec("claude", "stream-json", bench.root),
        "healer": bench.manifest["worker"],
    }
    worker, healer = probe(bench)
    assert worker.ok
    assert worker.text.startswith("worker: claude answered with a valid contract in ")
    assert "DONE, ready (" in worker.text
    assert "$0.01" in worker.text
    assert healer.ok
    assert "healer: command answered with a valid contract" in healer.text
    assert "NOT_FIXABLE, ready (tokens not reported, cost not reported)" in healer.text
    assert not bench.state_dir.exists(), "nothing of the run is touched"
    assert bench.tree() == {}


def test_it_runs_in_a_scratch_folder_that_is_gone_afterwards(bench: Bench) -> None:
    bench.script(TASK, 'pwd > "$here/where"; git rev-parse --show-toplevel > "$here/top"; touch x')
    (bench.workspace / "run.sh").write_text(f'exec /bin/sh "{bench.root}/worker.sh"\n')
    (found,) = probe(bench, worker={"adapter": "command", "command": ["/bin/sh", "run.sh"]})
    assert found.ok, found.text
    where = Path((bench.root / "where").read_text().strip())
    assert "cacp-probe-" in str(where)
    assert (bench.root / "top").read_text().strip() == str(where)
    assert not where.exists()
    assert bench.tree() == {"run.sh": f'exec /bin/sh "{bench.root}/worker.sh"\n'}


@pytest.mark.parametrize(
    ("script", "answer", "told"),
    [
        ("", "Hello! How can I help?\n", "NO_SENTINEL"),
        ("", "Hello! How can I help?\n", "the end of its output: Hello! How can I help?"),
        ("exit 3", "", "exit code 3; NO_SENTINEL"),
        ("exit 3", "", "it wrote nothing"),
        ("", READY.replace('"DONE"', '"FINE"'), "SCHEMA_VIOLATION: "),
        ("echo 'API Error: 401 authentication_error: invalid x-api-key'; exit 1", "",
         "its provider was unavailable, it refuses the account or key: API Error: 401"),
        ("echo 'Prompt is too long'; exit 1", "", "refuses the prompt as too large: Prompt is"),
        ("", result_block(TASK, status="BLOCKED", summary="no tools"), "BLOCKED, no tools"),
    ],
)  # fmt: skip
def test_what_is_no_contract_is_told_as_it_came(
    bench: Bench, script: str, answer: str, told: str
) -> None:
    bench.script(TASK, script)
    bench.answer(TASK, answer)
    (found,) = probe(bench)
    assert not found.ok
    assert told in found.text
    assert "\n" not in found.text


def test_a_cli_that_never_answers_is_stopped(bench: Bench) -> None:
    bench.script(TASK, "sleep 600")
    (found,) = probe(bench, limit=0.5)
    assert not found.ok
    assert "it was stopped after 0.5 s; NO_SENTINEL" in found.text


def test_a_cli_that_is_not_there(bench: Bench) -> None:
    (found,) = probe(bench, worker={"adapter": "claude", "command": ["/no/claude"]})
    assert not found.ok
    assert "it could not be started; the end of its output: cannot start /no/claude" in found.text


def test_a_compact_report_counts_where_the_run_reads_one(bench: Bench) -> None:
    bench.answer(TASK, "STATUS:ok\n")
    project = load_project(bench.save())
    assert not probe_all(project, LIMIT)[0].ok
    assert probe_all(project, LIMIT, read_wire)[0].ok
