"""`cacp keys` on a real file."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.keys import app
from proof.runner_key import RunnerKeys
from server.store import keys, mesh, peers, projects
from server.store.projects import ProjectHeader
from tests.cli.run import named, on_terminal
from tests.support.located import connect, prepare

AGENT = "aid://example.com/frontend@1.0.0"
BETA = "aid://example.com/beta@1.0.0"
Run = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cacp.db"
    prepare(path)
    return path


@pytest.fixture
def run(file: Path) -> Run:
    return lambda *words: CliRunner().invoke(app, words, env=named(db=str(file)))


def test_a_new_database_is_made_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "data" / "cacp.db"
    words = ["create", AGENT, "--repo", "r"]
    refused = CliRunner().invoke(app, words, env={"CACP_DB": str(path)})
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"there is no database at {path}" in " ".join(refused.stderr.split())
    assert "--create" in refused.stderr
    assert not path.parent.exists()
    done = CliRunner().invoke(app, [*words, "--create"], env={"CACP_DB": str(path)})
    assert done.stdout.startswith("cacp_sk_")
    assert f"created a new database {path}" in done.stderr


def test_create_prints_the_key_alone_and_the_node_knows_it(run: Run, file: Path) -> None:
    done = run("create", AGENT, "--repo", "frontend-app")
    assert done.exit_code == 0
    key = done.stdout.removesuffix("\n")
    assert keys.PATTERN.fullmatch(key.encode())
    assert "Shown only once" in done.stderr
    assert key not in done.stderr
    with closing(connect(file)) as db:
        holder = keys.holder(db, keys.hash_of(key.encode()))
    assert holder == keys.Holder(AGENT, "frontend-app", "verified", None)


def test_create_in_json(run: Run) -> None:
    made = json.loads(
        run("create", AGENT, "--repo", "frontend-app", "--trust", "known", "--json").stdout
    )
    assert made.pop("key").startswith("cacp_sk_live_")
    assert made.pop("keyId").startswith("key_")
    assert made == {
        "agentId": AGENT,
        "repo": "frontend-app",
        "trust": "known",
        "human": False,
        "projectIds": [],
        "registrationsEnded": [],
        "homeElsewhere": None,
    }


def registered(run: Run, file: Path) -> None:
    """Somebody has registered other versions of the agent without a key; and a peer, itself."""
    assert run("create", "aid://example.com/other", "--repo", "r").exit_code == 0
    with closing(connect(file)) as db:
        for version in ("1.0.0", "9.0.0"):
            name = AGENT.replace("1.0.0", version)
            peers.put(db, name, "http://127.0.0.1:9/\x1b[2J", "theirs", "unkeyed", 1)
        peers.put(db, BETA, "http://beta.example", "beta", "verified", 1)


def test_create_takes_back_what_was_registered_without_a_key(run: Run, file: Path) -> None:
    """Design §6: a keyed agent is never taken at its word."""
    registered(run, file)
    done = run("create", AGENT.replace("1.0.0", "2.0.0"), "--repo", "frontend-app")
    assert done.exit_code == 0
    said = " ".join(done.stderr.split())
    assert said.count("was registered as a peer without a key, at http://127.0.0.1:9/") == 2
    assert (
        "repo theirs, since 1970-01-01T00:00:00.000001+00:00. That registration has ended" in said
    )
    assert "\x1b" not in done.stderr
    assert done.stdout.startswith("cacp_sk_")
    with closing(connect(file)) as db:
        assert [one.agent_id for one in peers.every(db)] == [BETA]
    again = run("create", AGENT, "--repo", "frontend-app")
    assert "registered" not in again.stderr


def test_create_in_json_tells_what_has_ended(run: Run, file: Path) -> None:
    registered(run, file)
    made = json.loads(run("create", AGENT, "--repo", "frontend-app", "--json").stdout)
    assert [one["agentId"] for one in made["registrationsEnded"]] == [
        AGENT,
        AGENT.replace("1.0.0", "9.0.0"),
    ]
    assert made["registrationsEnded"][0]["trust"] == "unkeyed"


def test_create_says_that_the_home_is_elsewhere(run: Run, file: Path) -> None:
    registered(run, file)
    with closing(connect(file)) as db:
        mesh.put_home(db, AGENT, BETA)
    done = run("create", AGENT, "--repo", "frontend-app")
    assert f"the home of {AGENT} is aid://example.com/beta" in " ".join(done.stderr.split())
    with closing(connect(file)) as db:
        mesh.pin(db, BETA, "its key")
    done = run("create", BETA, "--repo", "beta", "--json")
    assert json.loads(done.stdout)["homeElsewhere"] == "aid://example.com/beta"


def test_list_shows_everything_but_the_key(run: Run) -> None:
    made = json.loads(run("create", AGENT, "--repo", "frontend-app", "--json").stdout)
    shown = run("list").stdout
    assert made["keyId"] in shown
    assert made["key"] not in shown
    (row,) = json.loads(run("list", "--json").stdout)
    assert set(row) == {
        "keyId",
        "agentId",
        "repo",
        "trust",
        "createdAt",
        "revokedAt",
        "human",
        "projectIds",
    }
    assert row["revokedAt"] is None


def test_revoke_is_for_good(run: Run) -> None:
    made = json.loads(run("create", AGENT, "--repo", "frontend-app", "--json").stdout)
    assert run("revoke", made["keyId"]).exit_code == 0
    (row,) = json.loads(run("list", "--json").stdout)
    assert row["revokedAt"]
    again = run("revoke", made["keyId"])
    assert again.exit_code == 1
    assert "not an active key" in again.stderr


def test_db_wins_over_the_environment(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert run("create", AGENT, "--repo", "r", "--create", "--db", str(other)).exit_code == 0
    assert AGENT in run("list", "--db", str(other)).stdout
    assert AGENT not in run("list").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["create", AGENT],
        ["create", "", "--repo", "r"],
        ["create", "two words", "--repo", "r"],
        ["create", AGENT, "--repo", ""],
        ["create", AGENT, "--repo", "r", "--trust", "full"],
        ["revoke"],
        ["destroy"],
    ],
)
def test_wrong_usage_makes_nothing(run: Run, file: Path, words: list[str]) -> None:
    assert run(*words).exit_code == 2
    assert run("list").stdout == ""


@pytest.mark.parametrize("command", ["create", "list", "revoke"])
def test_help_gives_an_example(run: Run, command: str) -> None:
    assert f" cacp keys {command}" in run(command, "--help").stdout.partition("Example")[2]


@pytest.mark.parametrize("more", [["--repo", "r"], ["--runner", "--file", "runner.json"]])
def test_an_id_that_is_not_in_canonical_form_is_refused_with_the_right_one(
    run: Run, file: Path, more: list[str]
) -> None:
    done = run("create", "aid://Example.com/Backend@2.0.0", *more)
    assert done.exit_code == 2
    assert "'aid://example.com/Backend@2.0.0'" in " ".join(done.stderr.replace("│", "").split())
    with closing(connect(file)) as db:
        assert keys.every(db) == []


def test_a_persons_key_needs_no_repo(run: Run, file: Path) -> None:
    done = run("create", AGENT, "--human")
    assert done.exit_code == 0, done.stderr
    assert "no repo, a human's" in done.stderr
    with closing(connect(file)) as db:
        holder = keys.holder(db, keys.hash_of(done.stdout.strip().encode()))
    assert holder is not None
    assert (holder.repo, holder.human) == ("", True)
    [row] = [line for line in run("list").stdout.splitlines() if line.startswith("key_")]
    assert row.split()[2] == "-"


@pytest.mark.parametrize("trust", ["known", "peer"])
def test_a_key_that_writes_nothing_is_no_persons(run: Run, file: Path, trust: str) -> None:
    done = run("create", AGENT, "--human", "--trust", trust)
    assert done.exit_code == 2
    assert "could not approve mail" in " ".join(done.stderr.split())
    assert run("list").stdout == ""


def test_an_agents_key_needs_one(run: Run, file: Path) -> None:
    done = run("create", AGENT)
    assert done.exit_code == 2
    assert "--repo" in done.stderr
    assert "--human" in done.stderr
    assert run("list").stdout == ""


def test_the_list_fits_a_terminal(run: Run, file: Path) -> None:
    with closing(connect(file)) as db:
        header = ProjectHeader("p1", "Coupons", "o", "planning", "any", 1, 1)
        projects.insert(db, header, [])
    agent = "aid://a-long-domain.example.com/frontend-application@1.0.0"
    assert run("create", agent, "--repo", "frontend-app", "--project", "coupons").exit_code == 0
    assert run("create", BETA, "--repo", "beta").exit_code == 0
    shown = on_terminal("keys", "list", db=str(file))
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["KEY", "AGENT", "REPO", "TRUST", "CREATED", "PROJECTS"]
    assert "…application@1.0.0" in lines[1]
    assert lines[1].endswith("Coupons")
    assert lines[2].endswith("all")
    assert agent in on_terminal("keys", "list", columns=140, db=str(file))


RUNNER = "aid://example.com/ci@1.0.0"


def test_a_runners_keys_go_into_a_file_and_the_node_keeps_what_it_checks_with(
    run: Run, file: Path, tmp_path: Path
) -> None:
    written = tmp_path / "runner.json"
    done = run("create", RUNNER, "--runner", "--repo", "api", "--file", str(written))
    assert (done.exit_code, done.stdout) == (0, "")
    assert written.stat().st_mode & 0o777 == 0o600
    kept = RunnerKeys.read(written)
    assert (kept.agent_id, kept.repo) == (RUNNER, "api")
    assert kept.api_key not in done.stderr
    assert kept.seed not in done.stderr
    with closing(connect(file)) as db:
        holder = keys.holder(db, keys.hash_of(kept.api_key.encode()))
        runner = keys.runner(db, kept.signing.public)
        assert not keys.is_keyed(db, RUNNER), "nobody speaks for a runner"
    assert holder == keys.Holder(RUNNER, "api", "runner", None)
    assert runner is not None
    assert runner == (RUNNER, "api", False, None)
    listed = json.loads(run("list", "--json").stdout)
    assert [key["trust"] for key in listed] == ["runner"]


def test_a_runner_without_a_repo_runs_for_all_and_its_key_can_be_revoked(
    run: Run, file: Path, tmp_path: Path
) -> None:
    written = tmp_path / "runner.json"
    made = json.loads(run("create", RUNNER, "--runner", "--file", str(written), "--json").stdout)
    key_id, public = made["keyId"], made["publicKey"]
    assert "key" not in made
    assert (made["repo"], made["trust"], made["file"]) == ("", "runner", str(written))
    assert run("revoke", key_id).exit_code == 0
    with closing(connect(file)) as db:
        runner = keys.runner(db, public)
    assert runner is not None
    assert runner.is_revoked


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--runner"], "--file"),
        (["--runner", "--human", "--file", "new.json"], "neither a person"),
        (["--runner", "--trust", "peer", "--file", "new.json"], "neither a person"),
        (["--repo", "api", "--file", "new.json"], "only a runner's"),
    ],
)
def test_a_runner_is_made_with_a_file_and_nothing_else_is(
    run: Run, words: list[str], problem: str
) -> None:
    refused = run("create", RUNNER, *words)
    assert refused.exit_code == 2
    assert problem in " ".join(refused.stderr.replace("│", " ").split())


def test_no_file_is_written_over(run: Run, file: Path, tmp_path: Path) -> None:
    written = tmp_path / "runner.json"
    written.write_text("another's")
    refused = run("create", RUNNER, "--runner", "--file", str(written))
    assert refused.exit_code == 1
    assert "is there already" in refused.stderr
    assert written.read_text() == "another's"
    with closing(connect(file)) as db:
        assert keys.every(db) == []
