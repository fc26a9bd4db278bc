"""Parameters as they are sent, one of each kind that SQLite takes."""

import enum
import math
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.store.postgresql.connection import PgConnection
from server.store.postgresql.values import Values, encoded
from tests.support.postgresql import server


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()


@pytest.fixture(scope="module")
def db() -> Iterator[PgConnection]:
    with closing(PgConnection(server())) as connection:
        yield connection


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("é", "é".encode()),
        ("", b""),
        ("a\0b", "a\ue000\ue001b".encode()),
        (Word("w\0"), "w\ue000\ue001".encode()),
        (0, b"0"),
        (-(2**63), b"-9223372036854775808"),
        (Level.HIGH, b"3"),
        (True, b"1"),
        (False, b"0"),
        (0.1, b"0.1"),
        (1e300, b"1e+300"),
        (math.inf, b"inf"),
        (None, None),
    ],
)
def test_a_text_is_sent_for_each_kind(value: object, sent: bytes | None) -> None:
    assert encoded([value]) == Values([sent], None)


def test_bytes_are_sent_as_they_are_and_marked() -> None:
    assert encoded([1, b"\0\xff", "x", b""]) == Values([b"1", b"\0\xff", b"x", b""], [0, 1, 0, 1])


def test_no_values() -> None:
    assert encoded([]) == Values([], None)


@pytest.mark.parametrize("value", [[1], {}, (1,), object(), datetime.now(UTC), bytearray(b"x")])
def test_another_kind_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        encoded(["x", value])


def test_half_a_surrogate_pair_is_refused_as_by_sqlite() -> None:
    with pytest.raises(UnicodeEncodeError):
        encoded(["\ud800"])


@given(
    st.tuples(
        st.text(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.binary(max_size=50),
        st.none(),
    )
)
def test_the_server_returns_what_was_sent(
    db: PgConnection, values: tuple[str, int, float, bytes, None]
) -> None:
    statement = "SELECT ?::text, ?::bigint, ?::double precision, ?::bytea, ?::text"
    assert db.execute(statement, values).fetchone() == values
