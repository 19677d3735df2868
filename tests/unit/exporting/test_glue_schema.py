"""SQL tables and columns of exports."""

from __future__ import annotations

import pytest

from orbweaver.exporting.glue_schema import (
    HIVE,
    TABLES,
    database_name,
    glue_columns,
    glue_table,
    grown,
    query_name,
    query_names,
    second_name,
)
from orbweaver.model.columns import PAGES, Column, Table, Type, item_table

ROOT = "s3://bucket/exports/"


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("pages", "pages"),
        ("items/books.example/books", "items_books_example_books"),
        ("items/a-b_c.d/x_1", "items_a_b_c_d_x_1"),
        ("items/Ä/x", "items___x"),
    ],
)
def test_query_name_needs_no_quotes(table: str, name: str) -> None:
    assert query_name(table) == name


def test_second_table_of_same_query_name_has_hash() -> None:
    tables = ["items/a.b/c", "items/a/b_c", "pages", "items/a_b/c"]
    names = query_names(tables)
    assert query_names(reversed(tables)) == names
    assert sorted(names.values()) == sorted(tables)
    assert names["items_a_b_c"] == "items/a.b/c"
    assert names[second_name("items/a/b_c")] == "items/a/b_c"
    assert second_name("items/a/b_c").startswith("items_a_b_c_")


def test_database_name_follows_stack_name() -> None:
    assert database_name("Orbweaver-Test2") == "orbweaver_test2"


def test_every_type_has_athena_type() -> None:
    assert HIVE.keys() == set(Type)
    columns = [Column(name="a", type=Type.DECIMAL), Column(name="b", type=Type.DATE, many=True)]
    assert glue_columns(columns) == [
        {"Name": "a", "Type": "decimal(18,4)"},
        {"Name": "b", "Type": "array<date>"},
    ]


def test_tables_have_no_dt_column() -> None:
    """`dt` is the partition column of every table."""
    assert all(column.name != "dt" for table in TABLES for column in table.columns)


def test_complete_catalogue_table_is_unchanged() -> None:
    wanted = glue_table("pages", PAGES, ROOT)
    assert (wanted["TableType"], wanted["Parameters"]["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    standing = {
        **wanted,
        "CreateTime": 1,
        "Parameters": {**wanted["Parameters"], "transient_lastDdlTime": "1"},
    }
    assert grown(standing, wanted) is None


def test_missing_columns_are_added_to_catalogue_table() -> None:
    old = glue_table("x", item_table("n", "x", (Column(name="a"), Column(name="b"))), ROOT)
    new = glue_table(
        "x", item_table("n", "x", (Column(name="c"), Column(name="b", type=Type.NUMBER))), ROOT
    )
    change = grown(old, new)
    assert change is not None
    assert change["StorageDescriptor"]["Columns"][4:] == [
        {"Name": "a", "Type": "string"},
        {"Name": "b", "Type": "double"},
        {"Name": "c", "Type": "string"},
    ]
    assert grown(change, new) is None
    assert change["Parameters"] == new["Parameters"]


def test_catalogue_table_with_other_location_is_replaced() -> None:
    wanted = glue_table("pages", PAGES, ROOT)
    assert grown(glue_table("pages", PAGES, "s3://other/"), wanted) == wanted
    assert grown({}, glue_table("x", Table(name="x", columns=()), ROOT)) is not None
