"""What two definitions of a table differ in."""

from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, TableDefinition
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.node.decide import changes_between


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
