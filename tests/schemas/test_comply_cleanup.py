"""The rules by which `cacp comply` removes what its tests have made."""

import pytest
from pydantic import ValidationError

from schemas.comply_cleanup import CleanupRules


def test_a_rule_says_what_is_made_and_how_it_is_removed() -> None:
    rule = {"what": "things", "request": "make", "remove": {"method": "unmake"}}
    [read] = CleanupRules.model_validate({"rules": [rule]}).rules
    assert read.remove is not None
    assert (read.remove.params, read.id, read.stays) == ({}, None, "")
    with pytest.raises(ValidationError):
        CleanupRules.model_validate({"rules": [rule | {"undo": "unmake"}]})
