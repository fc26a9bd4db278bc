"""Planning writes (agent-threader-v2 §8 "Required Write Safeguards")."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from schemas.task_result import Write
from tests.threader.projects import write
from threader.writes import FileChange, WriteRefused, WriteRules, plan_writes


@pytest.fixture
def rules(tmp_path: Path) -> WriteRules:
    for name in ("work", "staging", "outside"):
        (tmp_path / name).mkdir()
    return WriteRules(tmp_path / "work", tmp_path / "staging", ["locked.txt"], [])


def plan(rules: WriteRules, *writes: dict[str, Any]) -> list[FileChange]:
    return plan_writes([Write.model_validate(item) for item in writes], rules)


def refused(rules: WriteRules, *writes: dict[str, Any]) -> str:
    with pytest.raises(WriteRefused) as caught:
        plan(rules, *writes)
    return caught.value.signal


def test_writes_to_one_file_are_one_change(rules: WriteRules) -> None:
    changes = plan(rules, write("a.txt", "one\n"), write("./a.txt", "two\n", "append"))
    assert changes == [FileChange("a.txt", None, b"one\ntwo\n")]


def test_append_makes_a_missing_file_and_keeps_the_mode(rules: WriteRules) -> None:
    script = rules.workspace / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    changes = plan(rules, write("run.sh", "true\n", "append"), write("new", "x", "append"))
    assert [change.mode for change in changes] == [0o755, 0o644]
    assert changes[0].after == b"#!/bin/sh\ntrue\n"


def test_operations_mind_what_exists(rules: WriteRules) -> None:
    (rules.workspace / "a.txt").write_text("x")
    assert refused(rules, write("a.txt", "y")) == "already_exists"
    assert refused(rules, write("b.txt", "y", "replace")) == "no_such_file"
    assert refused(rules, write("c", "1"), write("c", "2")) == "already_exists"


def test_links_may_not_lead_out(rules: WriteRules, tmp_path: Path) -> None:
    (rules.workspace / "link").symlink_to(tmp_path / "outside")
    (rules.workspace / "file").symlink_to(tmp_path / "outside" / "target")
    assert refused(rules, write("link/x", "y")) == "path_escape"
    assert refused(rules, write("file", "y", "append")) == "not_a_file"


def test_links_within_lead_to_the_real_path_and_its_protection(rules: WriteRules) -> None:
    (rules.workspace / ".git").mkdir()
    (rules.workspace / "real").mkdir()
    (rules.workspace / "alias").symlink_to("real")
    (rules.workspace / "innocent").symlink_to(".git")
    assert plan(rules, write("alias/x", "y"))[0].path == "real/x"
    assert refused(rules, write("innocent/config", "y")) == "protected_file"


def test_only_regular_files_are_written(rules: WriteRules) -> None:
    (rules.workspace / "folder").mkdir()
    (rules.workspace / "plain").write_text("x")
    assert refused(rules, write("folder", "y", "replace")) == "not_a_file"
    assert refused(rules, write("plain/child", "y")) in ("not_a_folder", "path_escape")


def test_precondition(rules: WriteRules) -> None:
    (rules.workspace / "a.txt").write_text("now")
    good = hashlib.sha256(b"now").hexdigest()
    stale = hashlib.sha256(b"then").hexdigest()
    assert plan(rules, write("a.txt", "new", "replace", sha256_before=f"sha256:{good}"))
    assert refused(rules, write("a.txt", "new", "replace", sha256_before=stale)) == "stale_base"
    assert refused(rules, write("b.txt", "new", sha256_before=good)) == "stale_base"


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [(100, 1, True), (101, 50, False), (101, 51, True), (200, 0, False)],
)
def test_shrinkage_rule(rules: WriteRules, before: int, after: int, fine: bool) -> None:
    (rules.workspace / "a.txt").write_text("x" * before)
    item = write("a.txt", "y" * after, "replace")
    if fine:
        assert plan(rules, item)
    else:
        assert refused(rules, item) == "shrinkage"
        allowed = WriteRules(rules.workspace, rules.staging, [], ["*.txt"])
        assert plan(allowed, item)


def test_inline_content_counts_before_staged(rules: WriteRules) -> None:
    (rules.staging / "big.txt").write_text("staged")
    both = write("a.txt", "inline", content_ref="big.txt")
    assert plan(rules, both)[0].after == b"inline"
    assert plan(rules, {**both, "content": ""})[0].after == b"staged"


def test_a_digest_may_be_spelled_in_capitals_and_only_a_digest_is_checked(
    rules: WriteRules,
) -> None:
    (rules.workspace / "a.txt").write_text("old")
    digest = hashlib.sha256(b"old").hexdigest()
    for given in (digest.upper(), f"SHA256:{digest.upper()}", "sha256:example"):
        assert plan(rules, write("a.txt", "new", "replace", sha256_before=given))
    wrong = "sha256:" + "A" * 64
    assert refused(rules, write("a.txt", "new", "replace", sha256_before=wrong)) == "stale_base"


def test_small_steps_are_no_way_around_the_shrinkage_rule(rules: WriteRules) -> None:
    """The whole effect of a result counts, not each write for itself."""
    (rules.workspace / "a.txt").write_text("x" * 500)
    steps = [write("a.txt", "x" * size, "replace") for size in (300, 170, 85)]
    assert refused(rules, *steps) == "shrinkage"
    back = write("a.txt", "y" * 400, "append")
    assert len(plan(rules, *steps, back)[0].after) == 485
    fresh = [write("b.txt", "x" * 500), write("b.txt", "x", "replace")]
    assert plan(rules, *fresh)[0].after == b"x", "what the result made itself it may make smaller"


def test_staged_content(rules: WriteRules, tmp_path: Path) -> None:
    (rules.staging / "big.txt").write_text("large")
    (rules.staging / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "outside" / "secret").write_text("s")
    (rules.staging / "link").symlink_to(tmp_path / "outside" / "secret")

    def staged(reference: str) -> dict[str, Any]:
        return {"path": "a", "op": "create", "encoding": "utf8", "content_ref": reference}

    assert plan(rules, staged("big.txt"))[0].after == b"large"
    for bad in ("binary", "link", "../outside/secret", "/etc/passwd", "missing"):
        assert refused(rules, staged(bad)) == "bad_content_ref"


def test_lone_surrogates_are_refused(rules: WriteRules) -> None:
    with pytest.raises(WriteRefused) as caught:
        plan_writes([Write(path="a", op="create", encoding="utf8", content="\ud800")], rules)
    assert caught.value.signal == "not_utf8"


def test_what_the_file_system_refuses_is_a_refused_write(rules: WriteRules) -> None:
    (rules.workspace / "loop").symlink_to("loop")
    (rules.staging / "loop").symlink_to("loop")
    assert refused(rules, write("n" * 256, "x")) == "unusable_path"
    assert refused(rules, write("loop/x", "x")) in ("unusable_path", "path_escape")
    for reference in ("loop", "n" * 256):
        item = {"path": "a", "op": "create", "encoding": "utf8", "content_ref": reference}
        assert refused(rules, item) in ("unusable_path", "bad_content_ref")
