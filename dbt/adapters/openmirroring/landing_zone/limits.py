"""The limits of a mirrored database."""

from __future__ import annotations

import threading

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import published_folders
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage

# the limit of a mirrored database (Fabric's documentation, "Troubleshoot mirroring")
MAX_TABLES = 1000
_MANY_TABLES = 900

# best practices: fewer than five
_MAX_KEY_COLUMNS = 4


class NewTables:
    """The tables that a run adds to a landing zone. The landing zone is listed only once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: set[TableFolder] | None = None
        self._has_warned = False

    def add(self, storage: Storage, table: TableFolder, definition: TableDefinition) -> list[str]:
        """Count a table that is published for the first time.

        Returns:
            warnings for the user

        Raises:
            MirrorError: if the table would exceed the limit
        """
        warnings = []
        if len(definition.key_columns) > _MAX_KEY_COLUMNS:
            warnings.append(
                f"The key of {table} has {len(definition.key_columns)} columns. Microsoft "
                f"recommends {_MAX_KEY_COLUMNS} at most. Use a hash of them in one column as "
                "the key."
            )
        with self._lock:
            if self._tables is None:
                self._tables = set(published_folders(storage))
            count = len(self._tables | {table})
            if count > MAX_TABLES:
                raise MirrorError(
                    f"{table} would be table number {count:,} of this landing zone, and a "
                    f"mirrored database has {MAX_TABLES:,} at most. Nothing was published. "
                    "Publish it to another mirrored database, set `mirror: false`, or drop "
                    "tables that nobody needs: dbt run-operation mirror_drop_orphans"
                )
            self._tables.add(table)
            if count >= _MANY_TABLES and not self._has_warned:
                self._has_warned = True
                warnings.append(
                    f"With {table} the landing zone has {count:,} tables. A mirrored database has "
                    f"{MAX_TABLES:,} at most."
                )
        return warnings
