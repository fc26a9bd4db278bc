"""Finding and loading tests."""

from pathlib import Path

import pytest

from comply.files import BadTest, NoSuchTest, around, find, load, load_all

TEST = '{"title": "t", "severity": "required", "steps": [{"delayMs": 1}]}'


def test_a_folder_and_a_file_in_it_are_each_taken_once(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.jsont").write_text(TEST)
    found = find([str(tmp_path), str(tmp_path / "a.jsont")])
    assert [path.name for path in found] == ["a.jsont", "b.jsont"]
    case = load(found[0])
    assert (case.id, case.suite, case.test.title) == ("a", tmp_path.name, "t")


def test_a_shipped_test_goes_by_its_id_or_as_reports_name_it() -> None:
    (found,) = find(["acp/required.initialize"])
    assert found in find(["required.initialize"])


def test_the_tests_around_one_are_those_beside_it_and_those_shipped(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsont").write_text(TEST)
    found = around([load(tmp_path / "a.jsont")])
    assert {f"{tmp_path.name}/b", "acp/required.initialize"} <= found
    assert "acp/b" not in found


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTest, match="no suite, test or file nope; the suites are"):
        find(["nope"])
    with pytest.raises(NoSuchTest, match=r"no \.jsont file in the folder"):
        find([str(tmp_path)])


def test_a_bad_file_is_named_with_its_line(tmp_path: Path) -> None:
    bad = tmp_path / "x.jsont"
    bad.write_text('{\n"title": 1}')
    with pytest.raises(BadTest, match=r"x\.jsont:2: title: should be a string"):
        load(bad)
    bad.write_bytes(b"\xff")
    with pytest.raises(BadTest, match=r"x\.jsont: can't be read: not UTF-8"):
        load(bad)


def test_one_that_is_no_test_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.jsont").write_text(TEST)
    (tmp_path / "b.jsont").write_text(TEST.replace('"t"', "1"))
    good, bad = load_all(find([str(tmp_path)]))
    assert (good.id, good.problem) == ("a", "")
    assert (bad.id, bad.test.title) == ("b", "b")
    assert bad.problem.endswith("b.jsont:1: title: should be a string")
