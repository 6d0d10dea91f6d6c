"""What a killed process leaves in the warehouse is out of the way of the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.openmirroring.node.scratch_tables import (
    NEW_ROWS,
    NEXT,
    ROWS,
    is_made_for,
    name_beside,
    tidy,
)

BATCH_ID = "20261121204415ef7e865d"
NEXT_ORDERS, *ORDERS_ROWS = (name_beside("orders", kind, BATCH_ID) for kind in (NEXT, *ROWS))


def folders(home: Path, *names: str) -> None:
    for name in names:
        (home / name).mkdir(parents=True)
        (home / name / "part-0.parquet").write_text(name)


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


@pytest.mark.parametrize("name", [NEXT_ORDERS, NEXT_ORDERS.upper()])
def test_a_table_made_for_a_run_is_recognised(name: str) -> None:
    assert is_made_for(name, "orders", NEXT)
    assert not is_made_for(name, "orders", NEW_ROWS)


@pytest.mark.parametrize(
    "name",
    [
        "orders__next_",
        "orders__next_week",
        f"my{NEXT_ORDERS}",
        f"{NEXT_ORDERS}0",
        "orders",
        "o.ders",
    ],
)
def test_a_table_of_a_user_is_never_taken_for_one(name: str) -> None:
    assert not is_made_for(name, "orders", NEXT)
    assert not is_made_for(NEXT_ORDERS, "o.ders", NEXT)


@pytest.mark.parametrize("schema", ["Sales", "default"])
def test_folders_of_tables_that_were_never_finished_are_removed(
    tmp_path: Path, schema: str
) -> None:
    home = tmp_path / "sales.db" if schema == "Sales" else tmp_path
    folders(home, NEXT_ORDERS, *ORDERS_ROWS, "orders", "orders__next_week", "customers")

    tidy(tmp_path, schema, "Orders", [])

    assert names(home) == {"orders__next_week", "customers"}


def test_folders_of_tables_stay(tmp_path: Path) -> None:
    home = tmp_path / "sales.db"
    folders(home, NEXT_ORDERS, *ORDERS_ROWS, "orders")

    tidy(tmp_path, "sales", "orders", [NEXT_ORDERS, *ORDERS_ROWS, "Orders"])

    assert names(home) == {NEXT_ORDERS, *ORDERS_ROWS, "orders"}


def test_a_folder_that_was_renamed_before_its_table_is_given_back(tmp_path: Path) -> None:
    home = tmp_path / "sales.db"
    folders(home, "orders")

    tidy(tmp_path, "sales", "orders", [NEXT_ORDERS])

    assert names(home) == {NEXT_ORDERS}
    assert (home / NEXT_ORDERS / "part-0.parquet").read_text() == "orders"


def test_a_warehouse_without_the_schema_is_left_alone(tmp_path: Path) -> None:
    tidy(tmp_path, "sales", "orders", [])

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["..", ".", "", "a/../../kept", "/kept"])
def test_a_path_is_no_name_of_a_folder_that_may_go(tmp_path: Path, name: str) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "warehouse" / "sales.db").mkdir(parents=True)
    name = str(kept) if name == "/kept" else name

    with pytest.raises(ValueError, match="is a path"):
        tidy(tmp_path / "warehouse", "sales", name, [])
    with pytest.raises(ValueError, match="is a path"):
        tidy(tmp_path / "warehouse", name, "orders", [])

    assert kept.is_dir()
    assert (tmp_path / "warehouse" / "sales.db").is_dir()
