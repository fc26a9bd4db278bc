from collections.abc import Iterator

import pytest

from tests.proof.provider import running


@pytest.fixture(scope="session")
def provider() -> Iterator[str]:
    """The address of a process with the providers of `tests.proof.provider`."""
    with running() as address:
        yield address
