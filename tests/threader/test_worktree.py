"""`isolation: worktree`: a tree per task, merged in order and verified again."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schemas.run_state import RunState, TaskStatus
from tests.threader.projects import Bench, heal_block, result_block, write
from threader.errors import NotReady
from threader.events import RunEvent
from threader.load import load_project
from threader.session import load_state, resume_run, start_run
from threader.transaction import FileTransaction
from threader.worktree import WorktreeSite
from threader.writes import FileChange


def git(bench: Bench, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    return subprocess.run(
        ["git", *identity, *args], cwd=bench.workspace, check=True, capture_output=True, text=True
    ).stdout


def make(tmp_path: Path, tasks: list[str | dict[str, Any]], **fields: Any) -> Bench:
    bench = Bench(tmp_path / "p", tasks, isolation="worktree", **fields)
    (bench.workspace / "base.txt").write_text("one\ntwo\nthree\n")
    git(bench, "init", "-q")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "start")
    return bench


def run(bench: Bench) -> RunState:
    return asyncio.run(bench.run())


def test_merges_come_in_order_whoever_finishes_first(tmp_path: Path) -> None:
    names = ["A", "B", "C"]
    bench = make(tmp_path, list(names), policy={"concurrency": 3, "heal_schedule": "epoch"})
    for index, name in enumerate(names):
        bench.answer(name, result_block(name, writes=[write(f"{name}.txt", name)]))
        bench.script(name, f"sleep 0.{4 - index * 2}")
    state = run(bench)
    assert all(task.status is TaskStatus.DONE for task in state.tasks.values())
    merges = git(bench, "log", "--merges", "--reverse", "--format=%s").split("\n")
    assert merges[:3] == ["Merge task A", "Merge task B", "Merge task C"]
    assert set(bench.tree()) == {"base.txt", "A.txt", "B.txt", "C.txt"}
    assert git(bench, "worktree", "list").count("\n") == 1
    assert git(bench, "status", "--porcelain") == ""


def test_a_conflict_is_a_failure_class_and_heals_on_the_new_base(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A", "B"], policy={"concurrency": 2, "heal_schedule": "epoch"})
    for name in ("A", "B"):
        text = f"one\n{name}\nthree\n"
        bench.answer(name, result_block(name, writes=[write("base.txt", text, "replace")]))
        bench.script(name, "sleep 0.3")
    bench.answer("healer", heal_block())
    state = run(bench)
    failed = [record.failure_signature for record in state.tasks["B"].history]
    assert failed[0] == "merge_conflict:base_txt"
    assert state.tasks["B"].status is TaskStatus.DONE
    assert bench.tree()["base.txt"] == "one\nB\nthree\n"


def test_verified_again_after_the_merge(tmp_path: Path) -> None:
    """Each change passes alone; together they fail, and the second is taken back."""
    bench = make(
        tmp_path,
        [{"id": "A", "verify_profile": "few"}, {"id": "B", "verify_profile": "few"}],
        policy={"concurrency": 2, "heal_schedule": "off"},
        healer=None,
    )
    bench.profile("few", ("test", 'test "$(ls new-* | wc -l)" -le 1'))
    for name in ("A", "B"):
        bench.answer(name, result_block(name, writes=[write(f"new-{name}", "x")]))
        bench.script(name, "sleep 0.3")
    state = run(bench)
    assert state.tasks["A"].status is TaskStatus.DONE
    assert state.tasks["B"].last_failure_class == "test_error"
    assert set(bench.tree()) == {"base.txt", "new-A"}
    assert git(bench, "status", "--porcelain") == ""


def test_what_a_worker_edits_by_itself_is_discarded(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"])
    bench.script("A", "echo mine > base.txt; echo x > stray.txt")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    state = run(bench)
    assert bench.tree() == {"a.txt": "a", "base.txt": "one\ntwo\nthree\n"}
    assert any("only its writes" in note for note in state.tasks["A"].history[0].notes)


def test_a_folder_within_a_repository(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"], workspace="work/sub")
    (bench.workspace / "sub").mkdir()
    (bench.workspace / "sub" / "x.txt").write_text("x")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "sub")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    assert run(bench).tasks["A"].status is TaskStatus.DONE
    assert "sub/a.txt" in bench.tree()


def test_the_workspace_must_be_a_clean_git_tree(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"])
    (bench.workspace / "base.txt").write_text("edited")
    with pytest.raises(NotReady, match="uncommitted changes"):
        run(bench)
    plain = Bench(tmp_path / "q", ["A"], isolation="worktree")
    with pytest.raises(NotReady, match="must be a git tree"):
        run(plain)


def test_links_within_the_tree_are_written_where_they_lead(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"])
    (bench.workspace / "real").mkdir()
    (bench.workspace / "real" / "x.txt").write_text("x")
    (bench.workspace / "alias").symlink_to("real")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "links")
    writes = [write("alias/new.txt", "new"), write("./a/../b.txt", "b")]
    bench.answer("A", result_block("A", writes=writes))
    assert run(bench).tasks["A"].status is TaskStatus.DONE
    assert {"real/new.txt", "b.txt"} <= set(bench.tree())


def test_when_git_fails_the_task_fails_and_the_run_goes_on(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A", "B"], healer=None)
    bench.script("A", "rm .git")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    state = run(bench)
    assert state.tasks["A"].last_failure_class == "transient_infra"
    assert state.tasks["B"].status is TaskStatus.DONE


@pytest.mark.parametrize("start", ["", "git checkout -qb mine; "])
def test_what_a_worker_commits_by_itself_is_discarded(tmp_path: Path, start: str) -> None:
    bench = make(tmp_path, ["A"])
    commit = "git -c user.name=w -c user.email=w@localhost commit -qam mine"
    bench.script("A", f"{start}echo evil > base.txt; {commit}")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    state = run(bench)
    assert state.tasks["A"].status is TaskStatus.DONE
    assert "directly" in "".join(state.tasks["A"].history[0].notes)
    assert bench.tree() == {"base.txt": "one\ntwo\nthree\n", "a.txt": "a"}
    assert "mine" not in git(bench, "log", "--format=%s")


def test_a_tree_without_its_git_is_no_part_of_the_repository_around_it(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"], healer=None)
    git(bench, "init", "-q", str(bench.root))
    bench.script("A", "rm .git; git init -q --bare x; rm -r x")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    assert run(bench).tasks["A"].last_failure_class == "transient_infra"
    assert not (bench.root / ".git" / "index").exists()


def test_a_summary_of_control_characters_is_committed_without_them(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"])
    bench.answer("A", result_block("A", summary="a\0b\n#c", writes=[write("a.txt", "a")]))
    assert run(bench).tasks["A"].status is TaskStatus.DONE
    assert "A: ab #c" in git(bench, "log", "--format=%s")


def test_no_tasks_name_is_that_of_anothers_journal(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A", "A.journal"], policy={"concurrency": 2, "heal_schedule": "epoch"})
    bench.profile("slow", ("test", "sleep 0.4"))
    bench.manifest["tasks"][0]["verify_profile"] = "slow"
    for name in ("A", "A.journal"):
        bench.answer(name, result_block(name, writes=[write(f"{name}.txt", "x")]))
    bench.script("A.journal", "sleep 0.2")
    assert {task.status for task in run(bench).tasks.values()} == {TaskStatus.DONE}


def test_the_variables_of_a_git_hook_do_not_mislead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(tmp_path, ["A"])
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert run(bench).tasks["A"].status is TaskStatus.DONE


def test_a_persons_edit_of_a_merged_file_is_kept(tmp_path: Path) -> None:
    bench = make(tmp_path, [{"id": "A", "verify_profile": "red"}], healer=None)
    bench.profile(
        "red", ("test", 'case "$PWD" in */worktrees/*) ;; *) echo mine > base.txt; false;; esac')
    )
    bench.answer("A", result_block("A", writes=[write("base.txt", "one\nA\nthree\n", "replace")]))
    state = run(bench)
    assert bench.tree() == {"base.txt": "one\ntwo\nthree\n"}
    notes = [note for record in state.tasks["A"].history for note in record.notes]
    assert any("base.txt was edited" in note for note in notes)
    assert (bench.state_dir / "backups" / "A.1" / "0.edited").read_text() == "mine\n"


def test_the_healer_works_in_a_tree_of_its_own(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"])
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.script("healer", 'pwd > "$here/where"; echo meddled > base.txt; git commit -qam x')
    bench.answer("healer", heal_block())
    state = run(bench)
    assert (bench.root / "where").read_text().strip().endswith("/worktrees/@healer")
    assert bench.tree() == {"base.txt": "one\ntwo\nthree\n"}
    assert "edited files directly" in state.healing_rounds[0].changes[0]
    assert git(bench, "worktree", "list").count("\n") == 1
    assert state.tasks["A"].status is TaskStatus.DONE


def test_a_run_merges_only_into_the_branch_it_began_on(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"])
    began = git(bench, "branch", "--show-current").strip()
    bench.script("A", f"[ $n != 1 ] || git -C {bench.workspace} checkout -q -b elsewhere")
    bench.answer("A", result_block("A", writes=[write("a.txt", "x")]))
    with pytest.raises(NotReady, match=f"merges into {began}, and the workspace is on elsewhere"):
        run(bench)
    assert git(bench, "log", "--format=%s", "--all").split("\n").count("Merge task A") == 0
    project = load_project(bench.save())
    with pytest.raises(NotReady, match=f"`git -C {bench.workspace} checkout {began}` and resume"):
        asyncio.run(resume_run(project)[0].go())
    git(bench, "checkout", "-q", began)
    state = asyncio.run(resume_run(project)[0].go())
    assert state.tasks["A"].status is TaskStatus.DONE
    assert git(bench, "log", "-1", "--format=%s", began).strip() == "Merge task A"


def test_a_run_on_a_detached_head_merges_there_and_nowhere_else(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A", "B", "C"], policy={"heal_schedule": "off"})
    branch = git(bench, "branch", "--show-current").strip()
    git(bench, "commit", "-q", "--allow-empty", "-m", "aside")
    aside = git(bench, "rev-parse", "HEAD").strip()
    git(bench, "checkout", "-q", "--detach", "HEAD~")
    for name in "ABC":
        bench.answer(name, result_block(name, writes=[write(f"{name}.txt", name)]))
    bench.script("B", f"[ $n != 1 ] || git -C {bench.workspace} checkout -q {aside}")
    with pytest.raises(NotReady, match="merges into a detached HEAD") as refused:
        run(bench)
    project = load_project(bench.save())
    git(bench, "checkout", "-q", branch)
    with pytest.raises(NotReady, match=f"the workspace is on {branch}"):
        asyncio.run(resume_run(project)[0].go())
    back = re.search(r"`git -C (\S+) (checkout --detach \w+)`", str(refused.value))
    assert back is not None
    git(bench, *back[2].split())
    git(bench, "commit", "-q", "--allow-empty", "-m", "a person's own, on top")
    state = asyncio.run(resume_run(project)[0].go())
    assert {task.status for task in state.tasks.values()} == {TaskStatus.DONE}
    assert set(bench.tree()) == {"base.txt", "A.txt", "B.txt", "C.txt"}
    assert git(bench, "rev-parse", branch).strip() == aside, "no branch has moved"


@pytest.mark.parametrize("fresh", [False, True])
def test_what_recovery_kept_is_known_though_it_then_refused(tmp_path: Path, *, fresh: bool) -> None:
    bench = make(tmp_path, ["A"], healer=None)
    run(bench)
    changes = [FileChange("half.txt", None, b"half")]
    crashed = FileTransaction(bench.workspace, bench.state_dir / "backups" / "A.2")
    crashed.begin(changes)
    crashed.apply(changes)
    (bench.workspace / "half.txt").write_text("mine")
    (bench.workspace / "base.txt").write_text("mine, too")
    project = load_project(bench.save())
    with pytest.raises(NotReady, match="uncommitted changes"):
        asyncio.run((start_run(project, fresh=True) if fresh else resume_run(project)[0]).go())
    assert [copy.path for copy in load_state(project).kept] == ["half.txt"]


def test_a_merge_that_a_persons_edit_forbids_leaves_the_edit_alone(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"], healer=None, policy={"max_worker_attempts_per_task": 1})
    mine = f"cd {bench.workspace}; echo mine > base.txt; echo new > a.txt"
    bench.script("A", mine)
    writes = [write("base.txt", "one\nA\nthree\n", "replace"), write("a.txt", "a")]
    bench.answer("A", result_block("A", writes=writes))
    state = run(bench)
    assert "overwritten_by_merge_base_txt" in str(state.tasks["A"].last_failure_signature)
    assert bench.tree() == {"base.txt": "mine\n", "a.txt": "new\n"}


def test_another_gits_lock_is_waited_for_told_and_costs_no_attempt(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"], healer=None)
    lock = bench.workspace / ".git" / "index.lock"
    bench.script("A", f"touch {lock}")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    opened = bench.open()
    told: list[str] = []

    def listen(event: RunEvent, _: RunState) -> None:
        told.append(event.kind)
        if event.kind == "waiting":
            assert "another git holds index.lock" in event.text
            lock.unlink()

    opened.listeners.append(listen)
    state = asyncio.run(opened.go())
    assert state.tasks["A"].status is TaskStatus.DONE
    assert (state.tasks["A"].runs, bench.calls("A")) == (1, 1)
    assert told.index("waiting") < told.index("resumed")
    (held,) = state.interruptions
    assert (held.kind, bool(held.ended)) == ("lock", True)
    assert state.tasks["A"].history[0].commit == git(bench, "rev-parse", "HEAD").strip()


def test_a_lock_that_stays_stops_the_run_and_counts_nothing(tmp_path: Path) -> None:
    bench = make(tmp_path, ["A"], healer=None, policy={"git_lock_sec": 0.1})
    lock = bench.workspace / ".git" / "index.lock"
    bench.script("A", f"[ $n != 1 ] || touch {lock}")
    bench.answer("A", result_block("A", writes=[write("a.txt", "a")]))
    opened = bench.open()
    with pytest.raises(NotReady, match="another git has held"):
        asyncio.run(opened.go())
    assert opened.store.load().interruptions[-1].cause.startswith("another git has held")
    project = load_project(bench.save())
    with pytest.raises(NotReady, match="another git has held"):
        asyncio.run(resume_run(project)[0].go())
    assert lock.exists(), "it is somebody else's"
    lock.unlink()
    state = asyncio.run(resume_run(project)[0].go())
    assert (state.tasks["A"].status, state.tasks["A"].attempts) == ("DONE", 1)
    assert bench.tree()["a.txt"] == "a"
    assert git(bench, "status", "--porcelain") == ""


COMMIT = "git -c user.name=p -c user.email=p@localhost commit -qam 'a person'"


@pytest.mark.parametrize(
    "theirs", ["sed -i s/A/person/ base.txt", "echo person >> base.txt; echo person > other.txt"]
)
def test_a_persons_commit_is_never_dropped_with_the_merge(tmp_path: Path, theirs: str) -> None:
    once = {"max_worker_attempts_per_task": 1}
    task = {"id": "A", "verify_profile": "red"}
    bench = make(tmp_path, [task], healer=None, policy=once)
    (bench.workspace / "other.txt").write_text("other\n")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "other")
    commit = f"{theirs}; {COMMIT}; false"
    bench.profile("red", ("test", f'case "$PWD" in */worktrees/*) ;; *) {commit};; esac'))
    bench.answer("A", result_block("A", writes=[write("base.txt", "one\nA\nthree\n", "replace")]))
    if "sed" in theirs:
        # Their commit builds on the merge: only they can say what is to stay.
        with pytest.raises(NotReady, match=r"cannot take back the merge of A\.1"):
            run(bench)
        assert bench.tree()["base.txt"] == "one\nperson\nthree\n"
        merge = git(bench, "log", "--merges", "--format=%H").strip()
        with pytest.raises(NotReady, match="or revert the merge"):
            asyncio.run(resume_run(load_project(bench.save()))[0].go())
        git(bench, "reset", "-q", "--hard", f"{merge}^1")
        git(bench, "commit", "-q", "--allow-empty", "-m", "a person")
        bench.profile("red", ("test", "true"))
        resumed = asyncio.run(resume_run(load_project(bench.save()))[0].go())
        assert resumed.tasks["A"].status is TaskStatus.DONE
    else:
        assert run(bench).tasks["A"].last_failure_class == "test_error"
        assert bench.tree() == {
            "base.txt": "one\ntwo\nthree\nperson\n",
            "other.txt": "person\n",
        }
    assert "a person" in git(bench, "log", "--format=%s")
    assert git(bench, "status", "--porcelain") == ""


def test_a_commit_made_in_the_midst_of_a_merge(tmp_path: Path) -> None:
    """git then stops with the index of before, which `git merge --abort` does not get over."""
    bench = make(tmp_path, ["A"])
    began = git(bench, "branch", "--show-current").strip()
    git(bench, "checkout", "-q", "-b", "theirs")
    (bench.workspace / "mine.txt").write_text("mine\n")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "a person")
    git(bench, "checkout", "-q", "-b", "task", began)
    (bench.workspace / "base.txt").write_text("task\n")
    (bench.workspace / "new.txt").write_text("task\n")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "A")
    git(bench, "checkout", "-q", began)
    head, commit = git(bench, "rev-parse", "HEAD", "task").split()
    git(bench, "merge", "-q", "--no-ff", "--no-commit", "task")
    (bench.workspace / "mine.txt").write_text("mine\n")
    git(bench, "update-ref", f"refs/heads/{began}", "theirs")
    backup = bench.state_dir / "backups" / "A.1"
    backup.mkdir(parents=True)
    (backup / "merge.json").write_text(json.dumps({"head": head, "commit": commit}))
    site = WorktreeSite(load_project(bench.save()), bench.state_dir)
    assert asyncio.run(site.recover(lambda _: False)) == {"A.1": []}
    assert bench.tree() == {"base.txt": "one\ntwo\nthree\n", "mine.txt": "mine\n"}
    assert git(bench, "status", "--porcelain") == ""
