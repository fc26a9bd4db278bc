"""What `make dist` builds: a wheel that is whole and runs, an sdist that makes the same wheel."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.architecture.source import OURS, ROOT
from tests.cli.run import environment_of
from tests.support.waiting import PATIENCE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HATCHLING = Path(sys.executable).with_name("hatchling")
BUILT = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}"
WHEEL, SDIST = f"{BUILT}-py3-none-any.whl", f"{BUILT}.tar.gz"


def build(source: Path, folder: Path) -> Path:
    """The folder, with what a source tree is built into."""
    done = subprocess.run(
        [HATCHLING, "build", "-d", folder], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def shipped(files: Iterable[Path]) -> set[str]:
    return {
        str(path)
        for path in files
        if "__pycache__" not in path.parts and not any(part.startswith(".") for part in path.parts)
    }


def test_the_wheel_holds_every_file_of_every_package(dist: Path) -> None:
    ours = (path for package in OURS for path in (ROOT / package).rglob("*") if path.is_file())
    expected = shipped(path.relative_to(ROOT) for path in ours) | {"cacp_launcher.py"}
    with ZipFile(dist / WHEEL) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == expected


@pytest.mark.parametrize("package", OURS)
def test_a_package_says_that_it_is_typed(dist: Path, package: str) -> None:
    """PEP 561: without the file, type checkers take nothing of it for typed."""
    with ZipFile(dist / WHEEL) as wheel:
        assert f"{package}/py.typed" in wheel.namelist()


def test_the_same_files_make_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    again = build(ROOT, tmp_path)
    for name in (WHEEL, SDIST):
        assert (again / name).read_bytes() == (dist / name).read_bytes()


def test_the_sdist_holds_what_is_in_the_repository_and_nothing_else(dist: Path) -> None:
    """A checkout has more, such as a file `.env` with secrets."""
    with tarfile.open(dist / SDIST) as sdist:
        held = {member.name.partition("/")[2] for member in sdist if member.isfile()}
    words = [
        "git",
        "ls-files",
    ]
    tracked = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()} <= held
    assert {name.partition("/")[0] for name in held} <= {
        *(name.partition("/")[0] for name in tracked.stdout.splitlines()),
        "PKG-INFO",
    }


def test_the_sdist_makes_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / SDIST) as sdist:
        sdist.extractall(tmp_path, filter="data")
    again = build(tmp_path / BUILT, tmp_path / "again")
    assert (again / WHEEL).read_bytes() == (dist / WHEEL).read_bytes()


def test_the_wheel_runs_where_it_is_installed(dist: Path, tmp_path: Path) -> None:
    """In an environment of its own, which finds the dependencies of this one."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv/bin/python"
    install = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", *install, dist / WHEEL],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull},
        check=True,
    )
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    # Its folder is searched; the .pth files in it, one of which names the checkout, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert run(tmp_path, python, "-c", "import server; print(server.__file__)") == (
        f"{site}/server/__init__.py\n"
    )
    cacp = tmp_path / "venv/bin/cacp"
    assert run(tmp_path, cacp, "--version") == f"cacp {PROJECT['version']}\n"
    assert "agreed" in run(tmp_path, cacp, "demo")


def run(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(
        words, cwd=folder, env=environment_of(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- releases -----------------------------------------------------------------------------------


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    files = [
        path
        for pattern in ("*.md", "docs/*.md", "deploy/*", ".github/**/*.*", ".devcontainer/*")
        for path in ROOT.glob(pattern)
        if path.is_file()
    ]
    told = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in files
        for found in re.finditer(
            r"\b(?:pip|pipx|uv|uvx|tool|add)\b.*\scacp-server\b(?![:/@])", path.read_text()
        )
    ]
    assert told == []


def test_the_changelog_has_a_heading_for_each_version() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    for heading in headings[1:]:
        assert re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading), heading


@pytest.mark.parametrize("name", ["aiosqlite", "uvicorn"])
def test_what_is_used_by_its_internals_has_an_upper_bound(name: str) -> None:
    """The next version may change them, and a wheel brings no lock."""
    [bounds] = [one for one in PROJECT["dependencies"] if re.match(rf"{name}\b", one)]
    assert "<" in bounds
