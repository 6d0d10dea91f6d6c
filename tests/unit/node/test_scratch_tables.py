"""Tables beside a relation and their folders: they go with their run, and no row is removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEW_ROWS,
    ROLES_OF_ROWS,
    ScratchTables,
    check_name,
    give_back,
    made_for,
    make_way,
    refuse_lost,
    remove_dropped,
    remove_unfinished,
    tidy,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.protocol.facts import NEXT
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout, TableDescription

BATCH_ID = "20261121204415ef7e865d"
PUBLISHED_ORDERS = f"orders__published_{BATCH_ID}"
NEXT_ORDERS, *ORDERS_ROWS = (f"orders__{kind}_{BATCH_ID}" for kind in (NEXT, *ROLES_OF_ROWS))
BESIDE = (NEXT_ORDERS, *ORDERS_ROWS)


def table(name: str, schema: str = "sales", location: str = "") -> OpenMirroringRelation:
    return OpenMirroringRelation.create(
        schema=schema, identifier=name, type=RelationType.Table, information=location
    )


class Embedded(Warehouse):
    """An embedded Spark that has nothing but names of tables, and drops none."""

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

    def drop(self, relation: OpenMirroringRelation) -> None:
        raise DbtRuntimeError("the server is gone")


# Tables


def test_a_table_that_cannot_be_dropped_hides_no_other_error(tmp_path: Path) -> None:
    def fail() -> None:
        with ScratchTables(Embedded(tmp_path, NEXT_ORDERS), table("orders"), BATCH_ID) as scratch:
            scratch.table(NEXT)
            raise DbtRuntimeError("no such column")

    with pytest.raises(DbtRuntimeError, match="no such column"):
        fail()


@pytest.mark.parametrize("name", [NEXT_ORDERS, NEXT_ORDERS.upper()])
def test_a_table_made_for_a_run_is_recognised(name: str) -> None:
    assert made_for("orders", NEXT)(name)
    assert made_for("orders", *ROLES_OF_ROWS, NEXT)(name)
    assert not made_for("orders", NEW_ROWS)(name)


USERS = ["orders__next_", "orders__next_week", f"my{NEXT_ORDERS}", f"{NEXT_ORDERS}0", "orders"]


@pytest.mark.parametrize("name", USERS)
def test_a_table_of_a_user_is_never_taken_for_one_of_a_run(name: str) -> None:
    assert not made_for("orders", NEXT)(name)
    assert not made_for("o.ders", NEXT)(NEXT_ORDERS)


@pytest.mark.parametrize("name", ["größe", "my-orders", "my orders", "a.b"])
def test_a_name_that_the_embedded_metastore_refuses_is_found_before_rows_are_written(
    name: str,
) -> None:
    with pytest.raises(CompilationError, match="letters a to z, digits and _ only"):
        check_name("sales", name, "parquet", is_embedded=True)
    check_name("sales", name, "parquet", is_embedded=False)
    check_name("sales", name, "iceberg", is_embedded=True)
    check_name("lake.sales", name, "parquet", is_embedded=True)


@pytest.mark.parametrize("is_embedded", [True, False])
def test_a_path_is_no_name_in_any_spark(is_embedded: bool) -> None:
    with pytest.raises(CompilationError, match="Spark makes a folder"):
        check_name("sales", "../orders", "parquet", is_embedded)


# Folders that a killed process leaves in the warehouse


def make(home: Path, *names: str) -> None:
    for name in names:
        (home / name).mkdir(parents=True)
        (home / name / "part-0.parquet").write_text(name)


def folders(home: Path) -> dict[str, str]:
    """The folders in the place of a schema, with the names that they had."""
    return {file.parent.name: file.read_text() for file in home.glob("*/part-0.parquet")}


@pytest.mark.parametrize("schema", ["Sales", "default"])
def test_folders_of_tables_of_a_run_that_were_never_finished_are_removed(
    tmp_path: Path, schema: str
) -> None:
    home = tmp_path / "sales.db" if schema == "Sales" else tmp_path
    kept = ("orders", "orders__next_week", "orders__published")
    make(home, *BESIDE, *kept)

    tidy(Embedded(tmp_path), table("Orders", schema))

    assert set(folders(home)) == set(kept)


@pytest.mark.parametrize(
    ("change", "found", "tables", "left"),
    [
        # folders of tables stay
        *(
            (change, [*BESIDE, "orders"], [*BESIDE, "Orders"], {n: n for n in (*BESIDE, "orders")})
            for change in (tidy, remove_dropped, make_way)
        ),
        # of a rename the folder was first
        (give_back, ["orders"], [NEXT_ORDERS], {NEXT_ORDERS: "orders"}),
        (give_back, ["orders"], [PUBLISHED_ORDERS], {PUBLISHED_ORDERS: "orders"}),
        (give_back, [PUBLISHED_ORDERS], ["orders"], {"orders": PUBLISHED_ORDERS}),
        # the metastore may have lost the table
        (tidy, ["orders"], ["customers"], {"orders": "orders"}),
        # a run was dropping the table
        (remove_dropped, ["orders", NEXT_ORDERS], [NEXT_ORDERS], {NEXT_ORDERS: NEXT_ORDERS}),
    ],
)
def test_folders_belong_to_their_tables(
    tmp_path: Path,
    change: Callable[[Warehouse, OpenMirroringRelation], None],
    found: list[str],
    tables: list[str],
    left: dict[str, str],
) -> None:
    make(tmp_path / "sales.db", *found)

    change(Embedded(tmp_path, *tables), table("orders"))

    assert folders(tmp_path / "sales.db") == left


def test_a_folder_whose_table_the_metastore_has_lost_is_moved_aside(tmp_path: Path) -> None:
    make(tmp_path / "sales.db", "orders")

    make_way(Embedded(tmp_path), table("orders"))

    [(aside, before)] = folders(tmp_path / "sales.db").items()
    assert aside.startswith("orders__left_")
    assert before == "orders"


def test_an_empty_folder_is_just_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "sales.db" / "orders").mkdir(parents=True)

    make_way(Embedded(tmp_path), table("orders"))

    assert not list((tmp_path / "sales.db").iterdir())


def test_a_warehouse_without_the_schema_is_left_alone(tmp_path: Path) -> None:
    tidy(Embedded(tmp_path), table("orders"))
    make_way(Embedded(tmp_path), table("orders"))

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["..", ".", "", "a/../../kept", "/kept"])
@pytest.mark.parametrize("change", [give_back, remove_unfinished, remove_dropped, make_way])
def test_a_path_is_no_name_of_a_folder_that_may_go(
    tmp_path: Path, name: str, change: Callable[[Warehouse, OpenMirroringRelation], None]
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "warehouse" / "sales.db").mkdir(parents=True)
    name = str(kept) if name == "/kept" else name
    warehouse = Embedded(tmp_path / "warehouse")

    for relation in (table(name), table("orders", name)):
        with pytest.raises(ValueError, match="is a path"):
            change(warehouse, relation)

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
