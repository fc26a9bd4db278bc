"""The short pauses of nodes that tests start."""

import pytest

from peers import backoff
from server.mesh import exchange
from tests.support import pace


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.support.pace.PAUSES", {"server.mesh.exchange": {"OVERSEE_SECONDS": 0.1}}
    )
    monkeypatch.setattr(exchange, "OVERSEE_SECONDS", 1.0)
    monkeypatch.setattr(backoff.delay, "__kwdefaults__", {"first": 0.5, "cap": 60.0})


def test_pauses_are_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_PACE", raising=False)
    pace.quicken()
    assert exchange.OVERSEE_SECONDS == 0.1
    assert backoff.delay(1, 1.0) == pace.FIRST_SECONDS


def test_the_real_pace_is_the_products_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PACE", "real")
    pace.quicken()
    assert exchange.OVERSEE_SECONDS == 1.0
    assert backoff.delay(1, 1.0) == 0.5


def test_a_pause_that_the_product_has_no_more_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_PACE", raising=False)
    monkeypatch.setitem(pace.PAUSES, "server.mesh.exchange", {"NAP_SECONDS": 0.1})
    with pytest.raises(AttributeError, match="NAP_SECONDS"):
        pace.quicken()
