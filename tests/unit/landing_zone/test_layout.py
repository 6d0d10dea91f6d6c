"""The names of folders and files in a landing zone."""

import pytest

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder, file_name, file_number


@pytest.mark.parametrize(
    ("schema", "name", "path", "scratch", "mirrored"),
    [
        ("sales", "orders", "sales.schema/orders", "_scratchPad/sales.orders", "sales.orders"),
        ("", "orders", "orders", "_scratchPad/orders", "dbo.orders"),
        (
            "verkäufe",
            "注文 2024",
            "verkäufe.schema/注文 2024",
            "_scratchPad/verkäufe.注文 2024",
            "verkäufe.注文 2024",
        ),
    ],
    ids=["in a schema", "at the root", "beyond ASCII"],
)
def test_a_table_has_a_folder_and_a_place_of_its_own_to_be_staged(
    schema: str, name: str, path: str, scratch: str, mirrored: str
) -> None:
    table = TableFolder(schema, name)

    assert (table.path, table.scratch, table.mirrored_table) == (path, scratch, mirrored)


def test_a_data_file_is_named_by_twenty_digits() -> None:
    assert file_name(2, "parquet") == "00000000000000000002.parquet"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("00000000000000000017.parquet", 17),
        ("00000000000000000017.csv", 17),
        ("00000000000000000017.csv.gz", 17),
        ("00000000000000000017-20261121164212ab.parquet", 17),
        ("_00000000000000000017.parquet", None),
        ("17.parquet", None),
        ("_metadata.json", None),
    ],
)
def test_only_twenty_digits_are_a_number(name: str, number: int | None) -> None:
    assert file_number(name) == number


BAD_NAMES = [
    *("", ".", "..", "../x", "a/b", "a\\b", "/etc", "a\nb", "a\x00", "a\x9f", "_x", "x.", " x"),
    *("x ", "a:b", "a*", "a\u202eb", "a\u200b", "\ud800", "x" * 129, "x" * 10_000),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_leave_the_landing_zone_or_are_ignored_by_fabric_are_refused(name: str) -> None:
    with pytest.raises(MirrorError, match="alias"):
        TableFolder("sales", name)
    if name:
        with pytest.raises(MirrorError, match="schema"):
            TableFolder(name, "orders")


def test_names_that_are_too_long_for_a_file_system_are_refused() -> None:
    with pytest.raises(MirrorError, match="220 bytes"):
        TableFolder("s" * 30, "注" * 63 + "x")
    assert TableFolder("s" * 30, "注" * 63)
