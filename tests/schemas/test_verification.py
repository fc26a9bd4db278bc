"""The verification policies, and how they are told."""

from typing import get_args

from schemas.verification import VERIFIED_BY, VerificationPolicy


def test_each_policy_is_told_in_words() -> None:
    assert set(VERIFIED_BY) == set(get_args(VerificationPolicy))
    assert len(set(VERIFIED_BY.values())) == len(VERIFIED_BY)
