"""What a snapshot has of the changes that it takes in place, after a run that may have died.

Delta and Iceberg have a version for each change. The manifest has the version that the batch was
planned for, so the first change of rows since then is that of the batch, or of somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.compare import Side
from dbt.adapters.openmirroring.node.plan import published_columns
from dbt.adapters.openmirroring.node.snapshot.reuse import MERGING_FORMATS, FileRange, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEW_ROWS,
    TYPED_ROWS,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import row_changes_since
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.protocol.facts import PART, Part
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation


@dataclass(frozen=True)
class TakenPart:
    """The changes of a committed batch, and the snapshot that takes them in place."""

    warehouse: Warehouse
    target: OpenMirroringRelation
    manifest: Manifest

    @property
    def table(self) -> OpenMirroringRelation:
        """The rows that the snapshot takes."""
        return table_beside(self.target, PART, self.manifest.batch.id)

    @property
    def touched(self) -> TouchedRows:
        batch = self.manifest.batch
        kinds = (TYPED_ROWS, NEW_ROWS)
        typed, new = (table_beside(self.target, kind, batch.id) for kind in kinds)
        keys = batch.definition.key_columns
        return TouchedRows(self.warehouse.found(typed) or new, keys, None)

    def look(self, last: str | None, run: str) -> tuple[Part, str | None]:
        """Find what the snapshot has of the changes, once no statement of a dead run can end.

        Args:
            last: the id of the build that was published last
            run: the id of this run

        Returns:
            that, and the state of the snapshot when it had taken the changes and no others
        """
        build = self.manifest.batch.build
        marks = self.warehouse.marks(self.warehouse.found(self.target))
        if marks.build not in (last, build):
            return Part.FOREIGN, None
        if marks.build == build:  # it is marked once it has taken them
            changes = self._changes()
            taken = changes[0] if changes else self.manifest.snapshot_version
            return Part.MARKED, f"version:{taken}"
        # A Spark server may still be running the statement of a run that died. Delta refuses a
        # write that began before this change of the table.
        self.warehouse.mark(self.target, {"openmirroring.recovered_by": run})
        changes = self._changes()
        if changes == []:
            return Part.OPEN, None
        if changes and self._has_only_taken(changes[0]):
            return Part.TAKEN, f"version:{changes[0]}"
        return Part.FOREIGN, None

    def is_open(self) -> bool:
        """Check that the snapshot has not changed since the plan. Return False if unknown."""
        try:
            return self._changes() == []
        except DbtRuntimeError as error:
            logger.debug(f"{self.target}: {error}")
            return False

    def _changes(self) -> list[str] | None:
        description = self.warehouse.describe(self.target)
        version = self.manifest.snapshot_version
        if version is None or description.layout.format not in MERGING_FORMATS:
            return None
        return row_changes_since(self.warehouse, self.target, description, version)

    def _has_only_taken(self, version: str) -> bool:
        """Check that a version of the snapshot has the planned rows, and the changes."""
        warehouse = self.warehouse
        columns = tuple(published_columns(self.manifest.batch.definition))
        found: OpenMirroringRelation = self.target.incorporate(version=version)
        expected = warehouse.sql(
            "mirror_with_touched_rows",
            snapshot=self.target.incorporate(version=self.manifest.snapshot_version),
            replacement=self.table,
            touched=self.touched,
            names=[column.quoted for column in columns],
        )
        changed = warehouse.sql(
            "mirror_compare_keyless",
            after=Side(FileRange(found), (), columns),
            before=Side(FileRange(f"({expected})"), (), columns),
            is_small=False,
            insert_marker="",
        )
        try:
            [counts] = warehouse.read(
                "mirror_count_keyless", changed=f"({changed})", snapshot=found
            ).rows
        except DbtRuntimeError as error:  # a version may have been removed
            logger.debug(f"{self.target}: {error}")
            return False
        return int(counts["inserted"]) == int(counts["deleted"]) == 0
