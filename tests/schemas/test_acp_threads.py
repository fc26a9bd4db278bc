"""The params of acp/threads and acp/thread."""

import pytest
from pydantic import ValidationError

from schemas.acp_threads import MailThreadParams, MailThreadsParams


def test_a_page_has_a_limit() -> None:
    assert MailThreadsParams().limit == MailThreadParams(thread_id="t").limit == 50
    for limit in (0, 201):
        with pytest.raises(ValidationError, match="limit"):
            MailThreadsParams(limit=limit)
