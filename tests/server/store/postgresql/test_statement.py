"""What is known of a statement: its parameters, its tables, and whether it is a plain insert."""

import re

import pytest

from server.store.postgresql.statement import PgStatement, prepare
from server.store.sql import POSTGRESQL, SQL

QUERIES: list[str] = [
    getattr(SQL, name).sql
    for name in SQL.available_queries
    if not name.endswith(("_cursor", "_postgresql"))
]


def tables(text: str) -> tuple[set[str], set[str]]:
    """What a statement writes to, and what it reads."""
    statement = prepare(text)
    return set(statement.writes), set(statement.reads)


def row_of(statement: PgStatement) -> str:
    assert statement.insert is not None
    return statement.insert[1]


# --- parameters -----------------------------------------------------------------------------------


def test_names_are_in_the_order_of_their_numbers() -> None:
    statement = prepare("SELECT :b, :a, :b")
    assert (statement.text, statement.names) == ("SELECT $1, $2, $1", ("b", "a"))


def test_positional_parameters_have_no_names() -> None:
    statement = prepare("SELECT ?, ?")
    assert (statement.text, statement.names) == ("SELECT $1, $2", None)


def test_a_statement_that_differs_is_that_of_postgresql() -> None:
    for text, differing in POSTGRESQL.items():
        assert prepare(text) == prepare(differing)
        assert prepare(text).text != text


# --- tables ---------------------------------------------------------------------------------------


def test_the_tables_that_it_writes_to() -> None:
    assert tables("INSERT INTO a (x) VALUES (:x)") == ({"a"}, set())
    assert tables("update A set x = 1") == ({"a"}, set())
    assert tables("DELETE FROM a WHERE x IN (SELECT x FROM b)")[0] == {"a"}
    assert tables("INSERT INTO a SELECT x FROM b JOIN c ON TRUE") == ({"a"}, {"b", "c"})
    both = "WITH gone AS (DELETE FROM a RETURNING x) INSERT INTO b SELECT x FROM gone"
    assert tables(both)[0] == {"a", "b"}


def test_an_upsert_writes_to_one_table() -> None:
    upsert = "INSERT INTO a (x) VALUES (:x) ON CONFLICT (x) DO UPDATE\n SET x = excluded.x"
    assert tables(upsert) == ({"a"}, set())


def test_no_query_writes_to_what_is_no_table() -> None:
    schema = " ".join(sql for sql in QUERIES)
    for text in QUERIES:
        for table in prepare(text).writes:
            assert re.search(rf"\b{table}\b", schema), text
            assert table not in {"set", "of", "skip", "nowait"}, text


def test_the_tables_that_it_reads() -> None:
    assert tables("SELECT * FROM a LEFT JOIN B ON TRUE") == (set(), {"a", "b"})
    assert tables(SQL.membership.sql) == (set(), {"projects", "repos", "project_lifecycle"})


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "\n  select 1",
        "-- first\n-- second\nSELECT 1",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1)",
        "INSERT INTO a (x) VALUES (:x) RETURNING x",
        "UPDATE a SET x = 1\nreturning x",
    ],
)
def test_it_returns_rows(text: str) -> None:
    assert prepare(text).returns


@pytest.mark.parametrize(
    "text", ["INSERT INTO a (x) VALUES (:x)", "UPDATE a SET x = 1", "DELETE FROM a", "COMMIT"]
)
def test_it_returns_none(text: str) -> None:
    assert not prepare(text).returns


def test_every_query_that_selects_returns_rows() -> None:
    for text in QUERIES:
        starts = text.lstrip().upper().startswith(("SELECT", "WITH"))
        assert prepare(text).returns == (starts or "RETURNING" in text.upper()), text


# --- plain inserts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("INSERT INTO a (x, y) VALUES (:x, :y);", "($1, $2)"),
        ("insert into a values (?, ?)", "($1, $2)"),
        ("\n INSERT  INTO a (x,\n y)\nVALUES ( :x ,\n :x )\n", "( $1 ,\n $1 )"),
    ],
)
def test_an_insert_of_one_row_is_plain(text: str, row: str) -> None:
    statement = prepare(text)
    assert row_of(statement) == row
    assert statement.table == "a"


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO a (x) VALUES (:x) ON CONFLICT DO NOTHING",
        "INSERT INTO a (x) VALUES (:x) ON CONFLICT (x) DO UPDATE SET x = excluded.x",
        "INSERT INTO a (x) VALUES (:x) RETURNING x",
        "INSERT INTO a (x) SELECT :x",
        "INSERT INTO a (x) VALUES (:x), (:y)",
        "INSERT INTO a (x) VALUES (lower(:x))",
        "INSERT INTO a (x) VALUES (1, 'x')",
        "INSERT INTO a (x) VALUES (:x); DELETE FROM a",
        "INSERT INTO a DEFAULT VALUES",
        "UPDATE a SET x = :x",
    ],
)
def test_all_else_is_not(text: str) -> None:
    assert prepare(text).insert is None


def test_constants_of_a_row_stay() -> None:
    statement = prepare("INSERT INTO a (x, y, z) VALUES ('it', :x, 7)")
    assert statement.of_rows(2).endswith("VALUES ('it', $1, 7), ('it', $2, 7)")


def test_the_text_of_many_rows() -> None:
    statement = prepare("INSERT INTO a (x, y) VALUES (:x, :y);")
    assert statement.of_rows(1) == "INSERT INTO a (x, y) VALUES ($1, $2)"
    assert statement.of_rows(3) == "INSERT INTO a (x, y) VALUES ($1, $2), ($3, $4), ($5, $6)"


def test_a_parameter_that_occurs_twice_is_sent_once_for_each_row() -> None:
    statement = prepare("INSERT INTO a (x, y, z) VALUES (:x, :y, :x)")
    assert statement.of_rows(2).endswith("VALUES ($1, $2, $1), ($3, $4, $3)")


def test_each_plain_insert_of_the_queries_has_a_parameter_for_each_value() -> None:
    plain = [statement for text in QUERIES if (statement := prepare(text)).insert is not None]
    assert len(plain) > 20
    for statement in plain:
        assert statement.names is not None
        numbers = {int(number) for number in re.findall(r"\$(\d+)", statement.of_rows(4))}
        assert numbers == set(range(1, 4 * len(statement.names) + 1)), statement.text
