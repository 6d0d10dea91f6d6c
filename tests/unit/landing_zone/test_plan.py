from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.landing_zone.plan import Files, Plan, changes_between


def table(
    columns: str,
    keys: str = "id",
    landing_format: str = "parquet",
    delimited: DelimitedText | None = None,
) -> TableDefinition:
    """A definition from `name type[:landed type]`, comma separated."""
    parsed = []
    for column in columns.split(","):
        name, spelled = column.split()
        kind, _, landed = spelled.partition(":")
        parsed.append(MirroredColumn(name, kind, landed or kind))
    if landing_format != "parquet":
        delimited = delimited or DelimitedText()
    return TableDefinition(tuple(parsed), tuple(keys.split()), landing_format, delimited)


PUBLISHED = table("id int, a string, b date")


@pytest.mark.parametrize(
    ("wanted", "changes"),
    [
        (PUBLISHED, []),
        (
            table("id int, a string, b date, c int"),
            [("columns_added", "column added: c")],
        ),
        (table("id int, b date"), [("columns_dropped", "column dropped: a")]),
        (
            table("id int, z string, b date"),
            [("columns_dropped", "column dropped: a"), ("columns_added", "column added: z")],
        ),
        (
            table("id int, A string, b date"),
            [("column_case_changed", "case of a column changed: a to A")],
        ),
        (
            table("id bigint, a string, b timestamp"),
            [
                (
                    "column_types_changed",
                    "column type changed: id from int to bigint, b from date to timestamp",
                )
            ],
        ),
        (
            table("id int, a string, b date", keys="id a"),
            [("key_columns_changed", "key columns changed from id to id, a")],
        ),
        (
            table("id int, a string, b date", keys=""),
            [("key_columns_changed", "key columns changed from id to none")],
        ),
        (
            table("id int, a string, b date", landing_format="csv"),
            [("landing_format_changed", "landing format changed from parquet to csv")],
        ),
        (table("b date, id int, a string"), [("columns_reordered", "columns reordered")]),
        (
            table("id int, a varchar(9):string, b date"),
            [("spark_types_changed", "types changed in Spark only")],
        ),
        (
            table("b date, id int, a string, c int"),
            [("columns_added", "column added: c")],
        ),
    ],
)
def test_changes_between_two_definitions(
    wanted: TableDefinition, changes: list[tuple[str, str]]
) -> None:
    found = [(change.kind, change.detail) for change in changes_between(PUBLISHED, wanted)]
    assert found == changes


@pytest.mark.parametrize(
    ("columns", "text", "changes"),
    [
        ("id int, a string", DelimitedText(), []),
        (
            "id int, a string, b date",
            DelimitedText(),
            [("declared_columns_changed", "column added: b")],
        ),
        ("a string, id int", DelimitedText(), [("declared_columns_changed", "columns reordered")]),
        (
            "id int, a string",
            DelimitedText(column_separator=";", null_value=""),
            [
                ("landing_format_changed", "column_separator changed from ',' to ';'"),
                ("landing_format_changed", "null_value changed from 'null' to ''"),
            ],
        ),
    ],
)
def test_declared_columns_of_delimited_text_do_not_evolve(
    columns: str, text: DelimitedText, changes: list[tuple[str, str]]
) -> None:
    published = table("id int, a string", landing_format="csv", delimited=DelimitedText())
    wanted = table(columns, landing_format="csv", delimited=text)

    found = [(change.kind, change.detail) for change in changes_between(published, wanted)]

    assert found == changes


def plan(publication: str = "changes", rows: int = 0, reason: str = "") -> Plan:
    return Plan(publication, reason, PUBLISHED, RowCounts(inserted=rows))


@pytest.mark.parametrize(
    ("definition", "rows", "marked"),
    [
        (PUBLISHED, RowCounts(1, 0, 0), True),
        (replace(PUBLISHED, default_row_marker="upsert"), RowCounts(1, 1, 0), False),
        (replace(PUBLISHED, default_row_marker="upsert"), RowCounts(1, 1, 1), True),
        (
            replace(
                PUBLISHED,
                default_row_marker="upsert",
                landing_format="csv",
                delimited=DelimitedText(),
            ),
            RowCounts(1, 1, 0),
            True,
        ),
        (replace(PUBLISHED, key_columns=()), RowCounts(1, 0, 0), False),
    ],
    ids=["inserts", "upserts", "upserts with deletes", "delimited text", "keyless"],
)
def test_changes_have_row_markers_where_they_need_them(
    definition: TableDefinition, rows: RowCounts, marked: bool
) -> None:
    assert Plan("changes", "", definition, rows).is_marked == marked
    assert not Plan("rebuild", "", definition, rows).is_marked


@pytest.mark.parametrize(
    ("option", "detail"),
    [
        ({"file_detection": "last_update_time"}, "from 'sequential' to 'last_update_time'"),
        ({"default_row_marker": "upsert"}, "from 'insert' to 'upsert'"),
    ],
)
def test_declared_options_of_files_and_markers_cannot_change(
    option: dict[str, str], detail: str
) -> None:
    (change,) = changes_between(PUBLISHED, replace(PUBLISHED, **option))  # type: ignore[arg-type]
    assert change.kind == "landing_format_changed"
    assert detail in change.detail


def test_only_an_unchanged_plan_without_a_reason_is_void() -> None:
    assert plan("unchanged").is_void
    assert not plan("unchanged", reason="columns reordered").is_void
    assert not plan("changes", reason="column added: c").is_void


@pytest.mark.parametrize(
    ("rows", "table_bytes", "table_rows", "files"),
    [
        (100, 1000, 100, Files(1, 0)),
        (100, 100_000, 100, Files(10, 13)),
        (10, 100_000, 100, Files(1, 0)),
        (20, 100_000, 100, Files(2, 13)),
        (0, 0, 0, Files(1, 0)),
    ],
)
def test_a_batch_is_cut_to_files_of_the_target_size(
    rows: int, table_bytes: int, table_rows: int, files: Files
) -> None:
    assert plan(rows=rows).files(table_bytes, table_rows, target_bytes=10_000) == files
