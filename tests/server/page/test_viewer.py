"""Who may act on a page."""

import pytest

from server.auth.authenticator import Caller
from server.page.viewer import Viewer


@pytest.mark.parametrize(
    ("human", "csrf", "acts"),
    [(True, "token", True), (True, None, False), (False, "token", False)],
)
def test_only_a_person_with_a_session_acts(human: bool, csrf: str | None, acts: bool) -> None:
    caller = Caller("aid://example.com/ann", "", "verified", "key", human=human)
    viewer = Viewer(caller, csrf)
    assert viewer.may_act is acts
    assert viewer.signed_in is (csrf is not None)
