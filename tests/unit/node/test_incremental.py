"""The columns of an incremental model's next snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.incremental import (
    IncrementalColumn,
    history_columns,
    incremental_columns,
)
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn

SNAPSHOT = {"id": "int", "Name": "string", "old": "date"}
NEW_ROWS = {"name": "string", "id": "bigint", "fresh": "double"}


def combine(on_schema_change: str, **config: Any) -> list[IncrementalColumn]:
    snapshot = [OpenMirroringColumn(*column) for column in SNAPSHOT.items()]
    new_rows = [OpenMirroringColumn(*column) for column in NEW_ROWS.items()]
    return incremental_columns(snapshot, new_rows, on_schema_change, config)


def test_appended_columns_come_last_and_the_others_keep_their_types() -> None:
    assert combine("append_new_columns") == [
        IncrementalColumn("id", "int", "int", "bigint", True),
        IncrementalColumn("Name", "string", "string", "string", True),
        IncrementalColumn("old", "date", "date", None, False),
        IncrementalColumn("fresh", "double", None, "double", True),
    ]


def test_synchronised_columns_are_those_of_the_new_rows_in_the_order_of_the_table() -> None:
    assert combine("sync_all_columns") == [
        IncrementalColumn("id", "bigint", "int", "bigint", True),
        IncrementalColumn("Name", "string", "string", "string", True),
        IncrementalColumn("fresh", "double", None, "double", True),
    ]


@pytest.mark.parametrize(
    ("config", "updated"),
    [
        ({"merge_update_columns": ["NAME"]}, ["Name"]),
        ({"merge_exclude_columns": ["ID", "fresh"]}, ["Name"]),
    ],
)
def test_a_merge_updates_the_configured_columns(
    config: dict[str, Any], updated: list[str]
) -> None:
    columns = combine("append_new_columns", **config)

    assert [column.name for column in columns if column.is_updated] == updated


@pytest.mark.parametrize(
    ("on_schema_change", "message"),
    [
        ("ignore", "do not have the columns old"),
        ("fail", "added: fresh; gone: old; of another type: id"),
    ],
)
def test_a_difference_that_nobody_has_decided_about_is_an_error(
    on_schema_change: str, message: str
) -> None:
    with pytest.raises(CompilationError) as error:
        combine(on_schema_change)
    assert message in str(error.value)


def test_only_the_end_of_a_version_changes_in_a_dbt_snapshot() -> None:
    snapshot = {"id": "int", "dbt_scd_id": "string", "Valid_To": "date"}
    changes = {
        "id": "bigint",
        "dbt_scd_id": "string",
        "valid_to": "timestamp",
        "dbt_change_type": "string",
        "dbt_unique_key": "int",
        "DBT_UNIQUE_KEY_1": "int",
        "fresh": "double",
    }

    columns = history_columns(
        [OpenMirroringColumn(*column) for column in snapshot.items()],
        [OpenMirroringColumn(*column) for column in changes.items()],
        {"dbt_valid_to": "valid_to", "dbt_scd_id": "dbt_scd_id"},
    )

    assert columns == [
        IncrementalColumn("id", "bigint", "int", "bigint", False),
        IncrementalColumn("dbt_scd_id", "string", "string", "string", False, is_exact=False),
        IncrementalColumn("Valid_To", "date", "date", "timestamp", True, is_exact=False),
        IncrementalColumn("fresh", "double", None, "double", False),
    ]
