"""Path safety (agent-threader-v2 §8)."""

import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threader.paths import PathRefused, check_path, fold, matches, normalise


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "1 to 4096"),
        ("/etc/passwd", "absolute"),
        ("~/x", "absolute"),
        ("C:/x", "absolute"),
        ("../x", "leaves the workspace"),
        ("a/../../x", "leaves the workspace"),
        ("a\\..\\x", "backslash"),
        ("a/", "a folder"),
        (".", "a folder"),
        ("a/\x00b", "control"),
        (".g\u200cit/config", "invisible"),
        ("x" * 5000, "1 to 4096"),
        ("\ud800", "control"),
    ],
)
def test_escapes_are_refused(path: str, says: str) -> None:
    with pytest.raises(PathRefused, match=says):
        normalise(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".GIT/hooks/x",
        "a/../.git/x",
        "sub/.Git/x",
        ".git./x",
        "\uff0egit/x",
        ".env",
        ".ENV.local",
        "deploy/.env",
        "certs/Server.PEM",
        ".threader/run-1/state.json",
        "Locked/file",
    ],
)
def test_protected_files_whatever_their_spelling(path: str) -> None:
    with pytest.raises(PathRefused, match="protected"):
        check_path(path, ["locked/*"])


def test_ordinary_paths_pass() -> None:
    assert check_path("./src//a/../b.py", []) == "src/b.py"
    assert check_path("environment.md", []) == "environment.md"
    assert check_path(".github/workflows/ci.yml", []) == ".github/workflows/ci.yml"


@given(st.text(alphabet="ab./\\~: \x00Ü", max_size=30))
@example("./~")
@example("./c:")
def test_what_passes_stays_inside(path: str) -> None:
    try:
        clean = normalise(path)
    except PathRefused:
        return
    joined = posixpath.normpath(posixpath.join("/base/tree", clean))
    assert joined.startswith("/base/tree/")
    assert normalise(clean) == clean


def test_fold_and_matches() -> None:
    assert fold("A./B ") == "a/b"
    assert matches("src/App.PY", ["SRC/*.py"])


def test_a_path_has_a_depth_that_tools_bear() -> None:
    assert normalise("d/" * 99 + "f")
    with pytest.raises(PathRefused, match="100 parts"):
        normalise("d/" * 100 + "f")
