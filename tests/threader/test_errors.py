"""The errors around a run."""

from threader.errors import ManifestProblems, ThreaderError


def test_problems_are_kept_one_by_one() -> None:
    error = ManifestProblems(["one", "two"])
    assert isinstance(error, ThreaderError)
    assert (error.problems, str(error)) == (["one", "two"], "one\ntwo")
