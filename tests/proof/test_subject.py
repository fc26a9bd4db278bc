"""What is known of a receipt before anything is run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proof.git_tree import GitTree
from proof.subject import NotItsSide, NotVerifiable, ProofSubject, kept_file, side_of

COMMIT, OTHER = "a" * 40, "b" * 40
TREE = GitTree(Path("/srv/api"), Path("/srv/api"), Path("/srv/api/.git"), COMMIT, "c" * 40, ())
SUBJECT = ProofSubject(
    project_id="p",
    contract_id="0198c0df",
    contract="Get profile",
    version=2,
    digest="d" * 64,
    round=3,
    repo_id="r1",
    repo="backend-api",
    side="provider",
    declared=COMMIT,
    is_complete=True,
    is_asked=True,
)


def test_a_clean_tree_of_the_declared_commit_may_be_verified() -> None:
    SUBJECT.check(TREE)
    replace(SUBJECT, declared=None, is_asked=False).check(TREE)


@pytest.mark.parametrize(
    ("subject", "tree", "problem"),
    [
        (SUBJECT, replace(TREE, changes=("a.py", "b.py")), r"changes .*\(a.py, b.py\): commit"),
        (replace(SUBJECT, is_complete=False), TREE, "has not declared its work .* in round 3"),
        (replace(SUBJECT, declared=None), TREE, "has declared no commit complete"),
        (replace(SUBJECT, declared=OTHER), TREE, "has declared commit bbbbbbbbbbbb complete"),
    ],
)
def test_what_would_prove_nothing_is_told_with_what_would(
    subject: ProofSubject, tree: GitTree, problem: str
) -> None:
    with pytest.raises(NotVerifiable, match=problem) as told:
        subject.check(tree)
    if not tree.changes:
        assert f"cacp/implementation/complete projectId=p contractId=0198c0df commit={COMMIT}" in (
            str(told.value)
        )


def test_it_is_kept_as_text() -> None:
    assert ProofSubject.read(SUBJECT.text()) == SUBJECT
    for text in ("", "[]", "{}", '{"project_id": "p"}', SUBJECT.text().replace("side", "sight")):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
            ProofSubject.read(text)


LACKS_PROVIDER = [{"repoId": "r1", "side": "provider"}]
LACKS_BOTH = [*LACKS_PROVIDER, {"repoId": "r1", "side": "consumer"}]


@pytest.mark.parametrize(
    ("role", "unproven", "named", "side"),
    [
        ("provider", [], None, "provider"),
        ("consumer", LACKS_PROVIDER, None, "consumer"),
        ("consumer", [], "consumer", "consumer"),
        ("both", LACKS_PROVIDER, None, "provider"),
        ("both", LACKS_BOTH, "consumer", "consumer"),
    ],
)
def test_the_side_follows_from_the_role_or_is_named(
    role: str, unproven: list[Any], named: str | None, side: str
) -> None:
    assert side_of("r1", {"r1": role}, unproven, named) == side


@pytest.mark.parametrize(
    ("parties", "named", "problem"),
    [
        ({"r2": "provider"}, None, "not a party"),
        ({"r1": "provider"}, "consumer", "the provider of the contract, and not the consumer"),
        ({"r1": "both"}, None, "say with --side"),
    ],
)
def test_no_side_is_guessed(parties: dict[str, str], named: str | None, problem: str) -> None:
    with pytest.raises(NotVerifiable, match=problem):
        side_of("r1", parties, LACKS_BOTH, named)


@pytest.mark.parametrize("parties", [{"r2": "consumer"}, {"r1": "provider"}])
def test_a_side_that_the_repo_has_not_is_told_apart(parties: dict[str, str]) -> None:
    with pytest.raises(NotItsSide):
        side_of("r1", parties, [], "consumer")


def test_what_is_kept_lies_where_git_does_not_look() -> None:
    assert kept_file(TREE, "x.json") == Path("/srv/api/.git/cacp/x.json")
