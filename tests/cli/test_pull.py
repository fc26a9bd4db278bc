"""`cacp pull` with a real node, in a real repository."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.git_folder import top_level
from cli.pull_lock import LOCK
from cli.pull_types import generator_of
from tests.cli.npx import stand_in
from tests.cli.run import cacp
from tests.cli.test_casing import other_names
from tests.support.console import blocks, console_steps
from tests.support.node import REPO, Node
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

PAGE = Path(__file__).parents[2] / "docs/proof.md"
PROFILE = {"method": "GET", "path": "/users/{id}", "response": {"id": "integer", "name": "string"}}
CHANGED = PROFILE | {"response": {"id": "string", "name": "string"}}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository, in which commands are run."""
    top = tmp_path / "web"
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / "src").mkdir()
    monkeypatch.chdir(top / "src")
    assert top_level(Path.cwd()) == top.resolve()
    return top


def files(repo: Path) -> dict[str, str]:
    return {
        str(path.relative_to(repo)): path.read_text()
        for path in sorted((repo / ".cacp").rglob("*"))
        if path.is_file()
    }


def changed(team: Team, contract: str, content: dict[str, Any]) -> None:
    team.frontend("contract/respond", contractId=contract, action="request_change", comment="x")
    team.backend("contract/update", contractId=contract, content=content)


def test_a_project_is_pulled_and_checked(node: Node, team: Team, repo: Path) -> None:
    contract = team.agreed(name="Get profile", content=PROFILE)
    team.proposed(name="Draft", content=PROFILE)
    done = cacp("pull", team.project, "--types", "python", url=node.url)
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "Get profile: new, version 1\n"
        "  wrote .cacp/contracts/get-profile.json\n"
        "  wrote .cacp/python/cacp_types/get_profile.py\n"
        "1 contract of User Auth in .cacp/contracts.lock\n"
    )
    pulled = files(repo)
    assert json.loads(pulled[".cacp/contracts/get-profile.json"]) == PROFILE
    assert (
        "class GetProfileResponse(TypedDict):" in pulled[".cacp/python/cacp_types/get_profile.py"]
    )
    lock = json.loads(pulled[LOCK])
    assert lock["project"] == {"id": team.project, "name": "User Auth"}
    (locked,) = lock["contracts"]
    assert (locked["id"], locked["version"]) == (contract, 1)
    assert locked["types"]["python"]["generator"] == generator_of("python")
    assert "before" not in lock

    # Without changes no file is touched.
    times = {path: (repo / path).stat().st_mtime_ns for path in pulled}
    done = cacp("pull", url=node.url)
    assert (done.exit_code, done.stdout) == (
        0,
        "Nothing to do: 1 contract of User Auth, as agreed\n",
    )
    assert {path: (repo / path).stat().st_mtime_ns for path in pulled} == times
    done = cacp("pull", "--check", url=node.url)
    assert (done.exit_code, done.stdout) == (0, "As agreed: 1 contract of User Auth\n")


def test_a_newer_version_is_followed(node: Node, team: Team, repo: Path) -> None:
    contract = team.agreed(name="Get profile", content=PROFILE)
    assert cacp("pull", team.project, "--types", "python", url=node.url).exit_code == 0
    pulled = files(repo)

    # While a version is negotiated the last one stays, and is no finding.
    changed(team, contract, CHANGED)
    for words in (["pull", "--check"], ["pull"]):
        done = cacp(*words, url=node.url)
        assert done.exit_code == 0, done.output
        assert "Get profile is negotiated again: version 1 stays until one is agreed" in done.stderr
    assert files(repo) == pulled

    team.frontend("contract/respond", contractId=contract, action="agree")
    done = cacp("pull", "--check", url=node.url)
    assert (done.exit_code, done.stdout) == (1, "Get profile: version 1 → 2\n")
    assert files(repo) == pulled
    done = cacp("pull", "--check", "--json", url=node.url)
    assert json.loads(done.stdout) == {
        "current": False,
        "projectId": team.project,
        "files": [],
        "contracts": [
            {
                "contractId": contract,
                "name": "Get profile",
                "version": 2,
                "change": "updated",
                "before": 1,
            }
        ],
        "missingTypes": [],
    }
    done = cacp("pull", "--check", "--offline", url="http://127.0.0.1:9")
    assert (done.exit_code, done.stdout) == (0, "As the lock: 1 contract of User Auth\n")

    done = cacp("pull", "--json", url=node.url)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["changed"], answer["contracts"][0]["status"]) == (True, "agreed")
    assert [*other_names(answer)] == []
    assert answer["written"] == [
        ".cacp/contracts/get-profile.json",
        ".cacp/python/cacp_types/get_profile.py",
    ]
    assert "id: str" in files(repo)[".cacp/python/cacp_types/get_profile.py"]


def test_the_page_shows_what_is_printed(node: Node, repo: Path) -> None:
    section = PAGE.read_text().partition("## Contracts in the repository")[2].partition("\n## ")[0]
    content = json.loads((PAGE.parents[1] / "examples/orders/place-an-order.json").read_text())
    team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND), name="Orders")
    contract = team.agreed(name="Place an order", content=content)
    shown = [
        step
        for kind, _, text in blocks(section)
        if kind == "console"
        for step in console_steps(text)
    ]
    for number, (command, output) in enumerate(shown):
        words = command.replace("Orders", team.project).split()[1:]
        assert cacp(*words, url=node.url).stdout == output
        if number == 0:
            changed(team, contract, content | {"path": "/v2/orders"})
            team.frontend("contract/respond", contractId=contract, action="agree")
    (types,) = [text for kind, _, text in blocks(section) if kind == "text"]
    assert types in files(repo)[".cacp/python/cacp_types/place_an_order.py"]


def test_edited_files_are_never_lost(node: Node, team: Team, repo: Path) -> None:
    team.agreed(name="Get profile", content=PROFILE)
    assert cacp("pull", team.project, url=node.url).exit_code == 0
    pulled = files(repo)
    path = repo / ".cacp/contracts/get-profile.json"
    path.write_text("mine")
    done = cacp("pull", "--check", "--offline")
    assert (done.exit_code, done.stdout) == (1, ".cacp/contracts/get-profile.json was edited\n")
    done = cacp("pull", url=node.url)
    assert done.exit_code == 1
    assert done.stderr == (
        "cacp: would overwrite what was edited: .cacp/contracts/get-profile.json. Nothing was "
        "changed; move your changes elsewhere, or overwrite them with --force\n"
    )
    assert path.read_text() == "mine"
    assert cacp("pull", "--force", url=node.url).exit_code == 0
    assert files(repo) == pulled
    path.unlink()
    assert "is missing" in cacp("pull", "--check", url=node.url).stdout
    assert cacp("pull", url=node.url).exit_code == 0
    assert files(repo) == pulled


def test_languages_come_and_go(
    node: Node, team: Team, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    team.agreed(name="class", content=PROFILE)
    team.agreed(name="Query", content={"sdl": "type Query { a: Int }"})
    words = ["--types", "python", "--types", "typescript"]
    done = cacp("pull", team.project, *words, url=node.url)
    assert done.exit_code == 0, done.output
    assert "Query (version 1) has no types: graphql has generators of its own" in done.stderr
    assert {*files(repo)} == {
        LOCK,
        ".cacp/contracts/class.json",
        ".cacp/contracts/query.json",
        ".cacp/contracts/query.graphql",
        ".cacp/python/cacp_types/class_.py",
        ".cacp/typescript/class.d.ts",
    }
    done = cacp("pull", "--types", "typescript", url=node.url)
    assert "  removed .cacp/python/cacp_types/class_.py\n" in done.stdout
    done = cacp("pull", "--check", "--types", "python", url=node.url)
    assert (done.exit_code, done.stdout) == (1, "types of python were never made\n")
    assert cacp("pull", "--types", "none", url=node.url).exit_code == 0
    assert not [path for path in files(repo) if "class." in path and "contracts/" not in path]
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cacp("pull", "--types", "typescript", url=node.url)
    assert done.exit_code == 1
    assert "need npx, of Node.js 18 or newer" in done.stderr
    assert "Nothing was changed; --types none pulls without types" in done.stderr


def test_hostile_names_stay_in_their_folder(node: Node, team: Team, repo: Path) -> None:
    names = ["../../../x", "a\x1b[31m\nb", "CON", "get PROFILE", "Get profile", "x" * 200]
    for name in names:
        team.agreed(name=name, content={"email": "string"})
    before = {path for path in repo.parent.rglob("*") if ".cacp" not in path.parts}
    done = cacp("pull", team.project, "--types", "python", url=node.url)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    assert {path for path in repo.parent.rglob("*") if ".cacp" not in path.parts} == before
    assert len(files(repo)) == 1 + 2 * len(names)


def test_only_what_binds_a_repo(node: Node, team: Team, repo: Path) -> None:
    team.backend("project/addRepo", repo={"name": "other-app", "role": "other", "language": "go"})
    team.agreed(name="For both", content=PROFILE, parties=[REPO, FRONTEND])
    done = cacp("pull", team.project, "--repo", FRONTEND.upper(), url=node.url)
    assert done.exit_code == 0, done.output
    assert json.loads(files(repo)[LOCK])["repo"] == FRONTEND
    done = cacp("pull", "--repo", "nobody", url=node.url)
    assert (done.exit_code, "no repo here is named nobody" in done.stderr) == (1, True)
    assert json.loads(files(repo)[LOCK])["repo"] == FRONTEND
    assert cacp("pull", url=node.url).stdout.startswith("Nothing to do")
    done = cacp("pull", "--repo", "other-app", url=node.url)
    assert "For both: no longer agreed here\n  removed .cacp/contracts/for-both.json" in done.stdout


def test_another_project_takes_the_place_of_one_only_by_force(node: Node, repo: Path) -> None:
    key = node.key(FRONTEND_AGENT, FRONTEND)
    first, second = Team.on(node, key), Team.on(node, key)
    first.agreed(name="First", content=PROFILE)
    second.agreed(name="Second", content=PROFILE)
    assert cacp("pull", first.project, url=node.url).exit_code == 0
    done = cacp("pull", second.project, url=node.url)
    assert done.exit_code == 1
    assert f"has the contracts of User Auth ({first.project}); --force puts" in done.stderr
    done = cacp("pull", second.project, "--force", url=node.url)
    assert "First: no longer agreed here\n" in done.stdout
    assert {*files(repo)} == {LOCK, ".cacp/contracts/second.json"}


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        ([], 2, "name a project: this repository has no .cacp/contracts.lock yet"),
        (["--check"], 2, "name a project"),
        (["P", "--check"], 1, "there is no .cacp/contracts.lock: `cacp pull PROJECT` makes it"),
        (["P", "--offline"], 2, "--offline goes with --check"),
        (["P", "--types", "none", "--types", "python"], 2, "--types none goes with no other"),
        (["P"], 3, "127.0.0.1:9"),
    ],
)
def test_wrong_usage(repo: Path, words: list[str], status: int, why: str) -> None:
    done = cacp("pull", *words, url="http://127.0.0.1:9")
    assert (done.exit_code, why in done.stderr) == (status, True), done.output
    assert not (repo / ".cacp").exists()


def test_what_stands_in_the_way_is_named(node: Node, team: Team, repo: Path) -> None:
    team.agreed(name="Get profile", content=PROFILE)
    outside = repo.parent / "outside"
    outside.mkdir()
    (repo / ".cacp").symlink_to(outside)
    done = cacp("pull", team.project, url=node.url)
    assert done.exit_code == 1
    assert ".cacp is a symbolic link, and none is followed: remove it" in done.stderr
    assert [*outside.iterdir()] == []
    (repo / ".cacp").unlink()
    (repo / ".cacp").mkdir()
    (repo / LOCK).write_text('{"files": "../../etc"}')
    done = cacp("pull", team.project, url=node.url)
    assert (done.exit_code, "is no lock of `cacp pull`" in done.stderr) == (1, True)


def test_outside_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cacp("pull", "P")
    assert (done.exit_code, "is in no git repository" in done.stderr) == (2, True)
