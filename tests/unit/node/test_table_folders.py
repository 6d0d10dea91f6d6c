"""Folders that a killed process leaves in the warehouse stop nobody, and no row is removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEXT,
    ROLES_OF_ROWS,
    name_beside,
)
from dbt.adapters.openmirroring.node.snapshot.table_folders import (
    give_back,
    make_way,
    refuse_lost,
    remove_dropped,
    remove_unfinished,
    tidy,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout, TableDescription

BATCH_ID = "20261121204415ef7e865d"
PUBLISHED_ORDERS = f"orders__published_{BATCH_ID}"
NEXT_ORDERS, *ORDERS_ROWS = (
    name_beside("orders", kind, BATCH_ID) for kind in (NEXT, *ROLES_OF_ROWS)
)


def table(name: str, schema: str = "sales", location: str = "") -> OpenMirroringRelation:
    return OpenMirroringRelation.create(
        schema=schema, identifier=name, type=RelationType.Table, information=location
    )


class Embedded(Warehouse):
    """An embedded Spark that has nothing but names of tables."""

    is_local = True

    def __init__(self, folder: Path, *tables: OpenMirroringRelation | str) -> None:
        super().__init__(None, {})  # type: ignore[arg-type]
        self._folder = folder
        self._tables = [table(each) if isinstance(each, str) else each for each in tables]

    @property
    def embedded(self) -> Path | None:
        return self._folder

    def beside(self, _: OpenMirroringRelation) -> list[OpenMirroringRelation]:
        return self._tables

    def describe(self, relation: OpenMirroringRelation) -> TableDescription:
        return TableDescription((), Layout("parquet", (), ""), relation.location)

    def found(self, relation: OpenMirroringRelation) -> OpenMirroringRelation | None:
        return next((each for each in self._tables if each.place == relation.place), None)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of the schema `sales`."""
    return tmp_path / "sales.db"


def folders(home: Path, *names: str) -> None:
    for name in names:
        (home / name).mkdir(parents=True)
        (home / name / "part-0.parquet").write_text(name)


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


@pytest.mark.parametrize("schema", ["Sales", "default"])
def test_folders_of_tables_of_a_run_that_were_never_finished_are_removed(
    tmp_path: Path, schema: str
) -> None:
    home = tmp_path / "sales.db" if schema == "Sales" else tmp_path
    folders(home, NEXT_ORDERS, *ORDERS_ROWS, "orders", "orders__next_week", "orders__published")

    tidy(Embedded(tmp_path), table("Orders", schema))

    assert names(home) == {"orders", "orders__next_week", "orders__published"}


def test_folders_of_tables_stay(tmp_path: Path, home: Path) -> None:
    folders(home, NEXT_ORDERS, *ORDERS_ROWS, "orders")
    warehouse = Embedded(tmp_path, NEXT_ORDERS, *ORDERS_ROWS, "Orders")

    tidy(warehouse, table("orders"))
    remove_dropped(warehouse, table("orders"))
    make_way(warehouse, table("orders"))

    assert names(home) == {NEXT_ORDERS, *ORDERS_ROWS, "orders"}


@pytest.mark.parametrize(
    ("renamed", "known"),
    [
        ("orders", NEXT_ORDERS),
        ("orders", PUBLISHED_ORDERS),
        (PUBLISHED_ORDERS, "orders"),
    ],
)
def test_a_folder_that_was_renamed_before_its_table_is_given_back(
    tmp_path: Path, home: Path, renamed: str, known: str
) -> None:
    folders(home, renamed)

    give_back(Embedded(tmp_path, known), table("orders"))

    assert names(home) == {known}
    assert (home / known / "part-0.parquet").read_text() == renamed


def test_a_folder_whose_table_the_metastore_has_lost_is_moved_aside_with_a_word(
    tmp_path: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders(home, "orders")
    warehouse = Embedded(tmp_path, "customers")

    tidy(warehouse, table("orders"))
    assert names(home) == {"orders"}
    make_way(warehouse, table("orders"))

    [aside] = names(home)
    assert aside.startswith("orders__left_")
    assert (home / aside / "part-0.parquet").read_text() == "orders"


def test_an_empty_folder_is_just_in_the_way(tmp_path: Path, home: Path) -> None:
    (home / "orders").mkdir(parents=True)

    make_way(Embedded(tmp_path), table("orders"))

    assert not names(home)


def test_the_folder_of_a_table_that_a_run_was_dropping_goes(tmp_path: Path, home: Path) -> None:
    folders(home, "orders", NEXT_ORDERS)

    remove_dropped(Embedded(tmp_path, NEXT_ORDERS), table("orders"))

    assert names(home) == {NEXT_ORDERS}


def test_a_warehouse_without_the_schema_is_left_alone(tmp_path: Path) -> None:
    tidy(Embedded(tmp_path), table("orders"))
    make_way(Embedded(tmp_path), table("orders"))

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["..", ".", "", "a/../../kept", "/kept"])
@pytest.mark.parametrize("change", [give_back, remove_unfinished, remove_dropped, make_way])
def test_a_path_is_no_name_of_a_folder_that_may_go(
    tmp_path: Path, name: str, change: object
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "warehouse" / "sales.db").mkdir(parents=True)
    name = str(kept) if name == "/kept" else name
    warehouse = Embedded(tmp_path / "warehouse")
    assert callable(change)

    with pytest.raises(ValueError, match="is a path"):
        change(warehouse, table(name))
    with pytest.raises(ValueError, match="is a path"):
        change(warehouse, table("orders", name))

    assert kept.is_dir()
    assert (tmp_path / "warehouse" / "sales.db").is_dir()


def test_a_table_whose_folder_is_gone_is_not_read_as_an_empty_one(tmp_path: Path) -> None:
    there = table("orders", location=f"Owner: me\nLocation: file:{tmp_path}\nSchema: root")
    lost = table("items", location=f"Owner: me\nLocation: file:{tmp_path}/items\nSchema: root")
    far = table("far", location="Location: s3://bucket/far")
    warehouse = Embedded(tmp_path, there, lost, far, table("plain"))

    refuse_lost(warehouse, [there, far, table("plain"), table("unknown")])
    with pytest.raises(CompilationError, match=r"items is gone.*Put the folder back"):
        refuse_lost(warehouse, [there, lost])


def test_a_location_in_a_comment_is_none() -> None:
    lost = table("orders", location="Comment: a\nLocation: file:/etc/a\nLocation: file:/b")

    assert lost.location == ""
