import pytest

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder, file_name, file_number


def test_a_table_has_a_folder_in_the_folder_of_its_schema() -> None:
    assert TableFolder("sales", "orders").path == "sales.schema/orders"


def test_a_table_without_a_schema_is_at_the_root_and_has_a_place_of_its_own_to_be_staged() -> None:
    at_root, other = TableFolder("", "orders"), TableFolder("sales", "orders")
    assert (at_root.path, at_root.scratch) == ("orders", "_scratchPad/orders")
    assert other.scratch == "_scratchPad/sales.orders"
    assert (at_root.mirrored_table, other.mirrored_table) == ("dbo.orders", "sales.orders")


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


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "/etc",
            "a\nb",
            "a\x00",
            "a\x9f",
            "_x",
            "x.",
            " x",
        ),
        *("x ", "a:b", "a*", "a\u202eb", "a\u200b", "\ud800", "x" * 129, "x" * 10_000),
    ],
)
def test_names_that_leave_the_landing_zone_or_are_ignored_by_fabric_are_refused(name: str) -> None:
    with pytest.raises(MirrorError, match="alias"):
        TableFolder("sales", name)
    if name:
        with pytest.raises(MirrorError, match="schema"):
            TableFolder(name, "orders")


def test_names_beyond_ascii_are_fine() -> None:
    assert TableFolder("verkäufe", "注文 2024").path == "verkäufe.schema/注文 2024"


def test_names_that_are_too_long_for_a_file_system_are_refused() -> None:
    with pytest.raises(MirrorError, match="220 bytes"):
        TableFolder("verkäufe", "注" * 80)
    assert TableFolder("verkäufe", "注" * 60)
