"""dbt's tests of snapshots."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.simple_snapshot import new_record_check_mode as check_mode
from dbt.tests.adapter.simple_snapshot import new_record_dbt_valid_to_current as valid_to_current
from dbt.tests.adapter.simple_snapshot import new_record_timestamp_mode as timestamp_mode
from dbt.tests.adapter.simple_snapshot import test_ephemeral_snapshot_hard_deletes as hard_deletes
from dbt.tests.adapter.simple_snapshot import test_snapshot as simple
from dbt.tests.adapter.simple_snapshot import test_various_configs as various_configs
from dbt.tests.util import run_sql_with_adapter

from tests.functional.dbt_suite.postgres import postgres  # noqa: F401
from tests.functional.dbt_suite.translation import adapted


@pytest.fixture(scope="class")
def project_files(project_root: Path, project_files: None) -> None:
    """Name tables without their database: Spark has none."""
    for file in Path(project_root).glob("*/*.sql"):
        file.write_text(file.read_text().replace("{{target.database}}.", ""))


class Forgotten:
    """Where dbt's test empties a snapshot: we refuse to go on with rows that somebody deleted."""

    project: Any

    def delete_snapshot_records(self) -> None:
        self.project.run_sql("drop table {schema}.snapshot")
        for folder in Path(self.project.project_root).rglob("*.schema/snapshot"):
            shutil.rmtree(folder)


TestSnapshotCheckCols = adapted(BaseSnapshotCheckCols, changed_by_hand=("added",))
TestSnapshotTimestamp = adapted(BaseSnapshotTimestamp, changed_by_hand=("added",))
TestSimpleSnapshot = adapted(simple.BaseSimpleSnapshot, Forgotten)
TestSnapshotCheck = adapted(simple.BaseSnapshotCheck, Forgotten)
TestSnapshotColumnNames = various_configs.BaseSnapshotColumnNames
TestSnapshotColumnNamesFromDbtProject = various_configs.BaseSnapshotColumnNamesFromDbtProject
TestSnapshotInvalidColumnNames = various_configs.BaseSnapshotInvalidColumnNames
TestSnapshotMultiUniqueKey = various_configs.BaseSnapshotMultiUniqueKey
TestSnapshotNewRecordTimestampMode = timestamp_mode.BaseSnapshotNewRecordTimestampMode
TestSnapshotNewRecordCheckMode = check_mode.BaseSnapshotNewRecordCheckMode
TestSnapshotNewRecordDbtValidToCurrent = valid_to_current.BaseSnapshotNewRecordDbtValidToCurrent
TestSnapshotEphemeralHardDeletes = hard_deletes.BaseSnapshotEphemeralHardDeletes
TestSnapshotNewColumnTimestampStrategy = hard_deletes.BaseSnapshotNewColumnTimestampStrategy
TestSnapshotNewColumnSpecificCheckCols = hard_deletes.BaseSnapshotNewColumnSpecificCheckCols
TestSnapshotNewColumnWithDeletes = hard_deletes.BaseSnapshotNewColumnWithDeletes


class TestSnapshotDbtValidToCurrent(various_configs.BaseSnapshotDbtValidToCurrent):
    @pytest.fixture(autouse=True)
    def in_order_of_versions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The test counts on the order that rows have in Postgres: new versions at the end."""

        def run_in_order(adapter: Any, sql: str, fetch: str) -> Any:
            version = "row_number() over (partition by id order by test_valid_from) as version"
            select, table = sql.split(" from ")
            ordered = f"{select} from (select *, {version} from {table}) order by version, id"
            return run_sql_with_adapter(adapter, ordered, fetch)

        monkeypatch.setattr(various_configs, "run_sql_with_adapter", run_in_order)
