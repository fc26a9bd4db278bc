"""What tells a database from its copies."""

import psycopg
import pytest

from server.store.postgresql.identity import Identity, identity_of, is_copy

HERE = Identity("71", "16384", "00000001")


@pytest.mark.parametrize(
    ("now", "vouched", "copy"),
    [
        (HERE, False, False),
        (HERE._replace(system="72"), True, True),
        (HERE._replace(database="16385"), True, True),
        # Recovered to an earlier time, or a standby that took over while no replica ran.
        (HERE._replace(timeline="00000002"), False, True),
        # A standby that took over, and a replica went on with it.
        (HERE._replace(timeline="00000002"), True, False),
        # A server that does not say.
        (Identity("", "16384", ""), False, False),
        (Identity("", "16385", ""), False, True),
    ],
)
def test_a_copy_is_told_by_what_differs(now: Identity, vouched: bool, copy: bool) -> None:
    assert is_copy(HERE, now, vouched=vouched) is copy


def test_it_is_stored_as_a_text() -> None:
    for identity in (HERE, Identity("", "16384", "")):
        assert Identity.parse(identity.text) == identity


def test_a_server_says_what_it_is(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        identity = identity_of(db)
        assert identity == identity_of(db)
    assert all(part for part in identity)
