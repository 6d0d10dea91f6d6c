"""Tables beside a relation go with their run."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    CHANGED,
    NEW_ROWS,
    NEXT,
    ROLES_OF_ROWS,
    ScratchTables,
    check_name,
    leftovers,
    made_for,
    name_beside,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

BATCH_ID = "20261121204415ef7e865d"
NEXT_ORDERS, *ORDERS_ROWS = (
    name_beside("orders", kind, BATCH_ID) for kind in (NEXT, *ROLES_OF_ROWS)
)

ORDERS = OpenMirroringRelation.create(schema="sales", identifier="orders")


class Tables(Warehouse):
    """A Spark that has nothing but names of tables.

    Args:
        broken: whether a table cannot be dropped
    """

    def __init__(self, *names: str, broken: bool = False) -> None:
        super().__init__(None, {})  # type: ignore[arg-type]
        self.names = list(names)
        self.statements: list[str] = []
        self._broken = broken

    def sql(self, macro: str, /, **arguments: Any) -> str:
        return f"{macro}({', '.join(map(str, arguments.values()))})"

    def build(self, *statements: str) -> AdapterResponse:
        self.statements.extend(statements)
        return AdapterResponse(_message="OK")

    def added(self, relation: OpenMirroringRelation) -> None:
        self.names.append(str(relation.identifier))

    def found(self, relation: OpenMirroringRelation) -> OpenMirroringRelation | None:
        return relation if relation.identifier in self.names else None

    def beside(self, relation: OpenMirroringRelation) -> list[OpenMirroringRelation]:
        return [relation.incorporate(path={"identifier": name}) for name in self.names]

    def drop(self, relation: OpenMirroringRelation) -> None:
        if self._broken:
            raise DbtRuntimeError("the server is gone")
        self.names.remove(str(relation.identifier))


def test_rows_are_kept_beside_the_relation_until_the_node_ends() -> None:
    tables = Tables("orders")

    with ScratchTables(tables, ORDERS, BATCH_ID) as scratch:
        kept = scratch.keep(NEW_ROWS, "select 1")
        assert tables.names == ["orders", f"orders__new_rows_{BATCH_ID}"]

    assert tables.statements == [f"mirror_keep({kept}, select 1)"]
    assert tables.names == ["orders"]


def test_rows_are_kept_in_the_partitions_of_the_relation() -> None:
    tables = Tables("orders")

    with ScratchTables(tables, ORDERS, BATCH_ID) as scratch:
        kept = scratch.keep(NEW_ROWS, "select 1", ("day",), {"timeZone": "UTC"})

    options = {"timeZone": "UTC"}
    assert tables.statements == [f"mirror_keep_partitioned({kept}, select 1, ('day',), {options})"]


def test_a_node_that_fails_leaves_nothing_beside_its_relation() -> None:
    tables = Tables("orders")

    def fail() -> None:
        with ScratchTables(tables, ORDERS, BATCH_ID) as scratch:
            scratch.keep(NEW_ROWS, "select 1")
            tables.added(scratch.table(NEXT))
            scratch.table(CHANGED)  # it was never made
            raise DbtRuntimeError("no such column")

    with pytest.raises(DbtRuntimeError, match="no such column"):
        fail()
    assert tables.names == ["orders"]


def test_tables_that_a_committed_batch_needs_stay_for_the_next_run() -> None:
    tables = Tables("orders")
    is_committed = False

    with ScratchTables(tables, ORDERS, BATCH_ID, lambda: is_committed) as scratch:
        scratch.keep(NEW_ROWS, "select 1")
        is_committed = True

    assert tables.names == ["orders", f"orders__new_rows_{BATCH_ID}"]


def test_a_table_that_cannot_be_dropped_hides_no_other_error() -> None:
    def fail() -> None:
        with ScratchTables(Tables(broken=True), ORDERS, BATCH_ID) as scratch:
            scratch.keep(NEW_ROWS, "select 1")
            raise DbtRuntimeError("no such column")

    with pytest.raises(DbtRuntimeError, match="no such column"):
        fail()


def test_only_tables_of_earlier_runs_are_left_over() -> None:
    new_rows = name_beside("orders", NEW_ROWS, BATCH_ID)
    tables = Tables("orders", "orders__next_week", NEXT_ORDERS, new_rows)

    assert [str(found.identifier) for found in leftovers(tables, ORDERS, [NEXT])] == [NEXT_ORDERS]
    assert len(leftovers(tables, ORDERS, (NEXT, *ROLES_OF_ROWS))) == 2


@pytest.mark.parametrize("name", [NEXT_ORDERS, NEXT_ORDERS.upper()])
def test_a_table_made_for_a_run_is_recognised(name: str) -> None:
    assert made_for("orders", NEXT)(name)
    assert made_for("orders", *ROLES_OF_ROWS, NEXT)(name)
    assert not made_for("orders", NEW_ROWS)(name)


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
