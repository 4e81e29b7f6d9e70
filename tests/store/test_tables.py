"""Records as rows: what goes in comes out, and the tables of both engines are those the records ask for."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw
import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.errors import InvalidParams, StoreUnusable
from handrail.store.tables import BY_NAME, BY_RECORD, TABLES, UNIQUE, Table
from handrail.store.unit import differing_fields
from tests.store.ground import Ground
from tests.store.records import repository, task, workflow

TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)
WORDS = {"text": TEXT, "int": st.integers(-(2**63), 2**63 - 1), "flag": st.booleans()}
NOT_RECORDS = ("meta", "counter", "stream", "event", "idempotency")


def any_value(hint: Any, kind: str, nullable: bool) -> st.SearchStrategy[Any]:
    if kind != "json":
        return WORDS[kind] | st.none() if nullable else WORDS[kind]
    if str(hint) == "list[dict[str, typing.Any]]":
        return st.lists(st.dictionaries(TEXT, TEXT, max_size=2), max_size=2)
    if str(hint) == "dict[str, int]":
        return st.dictionaries(TEXT, st.integers(0, 9), max_size=3)
    if "list" in str(hint):
        return st.lists(TEXT, max_size=3)
    document = st.dictionaries(TEXT, TEXT | st.integers(-5, 5) | st.none(), max_size=3)
    return document | st.none() if "None" in str(hint) else document


def any_record(table: Table) -> st.SearchStrategy[Any]:
    hints = {field.name: field.type for field in msgspec.structs.fields(table.record)}
    values = {
        field: any_value(hints[field], kind, field in table.nullable)
        for field, kind in zip(table.fields, table.kinds, strict=False)
    }
    return st.builds(table.record, **values)


@given(st.data())
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_record_survives_its_row_and_its_document(table: Table, data: st.DataObject) -> None:
    record = data.draw(any_record(table))
    row = table.row_of(record)
    assert len(row) == len(table.columns)
    assert table.record_of(row) == record
    assert row[table.columns.index("stream")] == record.stream
    document = msgspec.json.decode(msgspec.json.encode(table.document_of(record)))
    assert table.record_from(document) == record


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_has_an_id_and_a_stream(table: Table) -> None:
    assert table.columns[0] == "id"
    assert "stream" in table.columns
    assert BY_NAME[table.name] is table
    assert BY_RECORD[table.record] is table


def test_a_text_with_a_nul_is_refused_by_name_of_its_table() -> None:
    with pytest.raises(InvalidParams, match="this task"):
        BY_NAME["task"].row_of(task(description="a\0b"))
    BY_NAME["task"].row_of(task(context={"a": "a\0b"}))


def test_a_row_that_cannot_be_read_names_itself() -> None:
    table = BY_NAME["workflow"]
    row = list(table.row_of(workflow("wf_7")))
    row[table.columns.index("plan")] = "{"
    with pytest.raises(StoreUnusable, match="workflow wf_7") as refused:
        table.record_of(row)
    assert refused.value.details == {"key": "wf_7"}


def test_records_differ_where_their_json_does() -> None:
    table = BY_NAME["task"]
    one = task(context={"a": 1}, unmet=1)
    assert differing_fields(table, one, task(context={"a": 1}, unmet=1)) == ()
    assert differing_fields(table, one, task(context={"a": True}, unmet=2)) == ("unmet", "context")
    assert differing_fields(BY_NAME["repository"], repository(), repository(name="x")) == ("name",)


# -- the schema as it ends up -----------------------------------------------------------------------------------------


class Column(NamedTuple):
    """What a database says of a column."""

    table: str
    name: str
    kind: str
    nullable: bool


def expected_columns() -> set[Column]:
    kinds = {"text": "text", "json": "text", "int": "int", "flag": "int"}
    return {
        Column(table.name, column, kinds[kind], column in table.nullable)
        for table in TABLES
        for column, kind in zip(table.columns, table.kinds, strict=True)
    }


def expected_keys() -> set[tuple[str, tuple[str, ...]]]:
    ids = {(table.name, ("id",)) for table in TABLES}
    return ids | {(name, columns) for name, found in UNIQUE.items() for columns in found}


def sqlite_columns(ground: Ground) -> set[Column]:
    connection = apsw.Connection(ground.address)
    kinds = {"TEXT": "text", "INTEGER": "int", "BLOB": "bytes"}
    found: list[Any] = connection.execute(
        "SELECT t.name, c.name, c.type, c.[notnull] = 0 AND c.pk = 0 FROM sqlite_schema t, pragma_table_info(t.name) c "
        "WHERE t.type = 'table'"
    ).fetchall()
    connection.close()
    return {Column(table, name, kinds[kind], bool(nullable)) for table, name, kind, nullable in found}


def postgres_columns(ground: Ground) -> set[Column]:
    kinds = {"text": "text", "bigint": "int", "bytea": "bytes"}
    with psycopg.connect(ground.address) as connection:
        found: list[Any] = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable = 'YES', collation_name "
            "FROM information_schema.columns WHERE table_schema = current_schema()"
        ).fetchall()
    assert {collation for *_, collation in found} == {"C", None}, "texts are ordered by their bytes, as in SQLite"
    return {Column(table, name, kinds[kind], nullable) for table, name, kind, nullable, _ in found}


def sqlite_keys(ground: Ground) -> set[tuple[str, tuple[str, ...]]]:
    connection = apsw.Connection(ground.address)
    found: list[Any] = connection.execute(
        "SELECT t.name, i.name, group_concat(c.name) FROM sqlite_schema t, pragma_index_list(t.name) i, "
        "pragma_index_info(i.name) c WHERE t.type = 'table' AND i.[unique] GROUP BY t.name, i.name"
    ).fetchall()
    connection.close()
    return {(table, tuple(columns.split(","))) for table, _, columns in found}


def postgres_keys(ground: Ground) -> set[tuple[str, tuple[str, ...]]]:
    with psycopg.connect(ground.address) as connection:
        found: list[Any] = connection.execute(
            "SELECT t.relname, array_agg(a.attname::text ORDER BY k.place) FROM pg_index i "
            "JOIN pg_class t ON t.oid = i.indrelid AND t.relnamespace = current_schema()::regnamespace "
            "CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(number, place) "
            "JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number "
            "WHERE i.indisunique GROUP BY t.relname, i.indexrelid"
        ).fetchall()
    return {(table, tuple(columns)) for table, columns in found}


def test_the_columns_are_those_the_records_have(lasting: Ground) -> None:
    found = sqlite_columns(lasting) if lasting.kind == "sqlite" else postgres_columns(lasting)
    assert {column for column in found if column.table not in NOT_RECORDS} == expected_columns()


def test_the_keys_are_ids_and_what_is_unique(lasting: Ground) -> None:
    found = sqlite_keys(lasting) if lasting.kind == "sqlite" else postgres_keys(lasting)
    assert {key for key in found if key[0] not in NOT_RECORDS} == expected_keys()


def test_both_engines_have_the_same_schema(sqlite: Ground, postgres: Ground) -> None:
    assert sqlite_columns(sqlite) == postgres_columns(postgres)
    # SQLite keeps a whole-number key as the row's own address and has no index for it.
    assert sqlite_keys(sqlite) | {("counter", ("one",))} == postgres_keys(postgres)
