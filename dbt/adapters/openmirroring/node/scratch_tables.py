"""Tables that live for a run, and folders that a killed process leaves without a table."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import BATCH_ID
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# What a run has beside a relation, as a table <identifier>__<kind>_<batch id>.
# A snapshot in the making.
NEXT = "next"
# What an incremental model has computed, and the same in the types of the snapshot.
NEW_ROWS, TYPED_ROWS = "new_rows", "typed_rows"
# The keys of what has changed.
CHANGED = "changed"
# The rows of a snapshot that may change, and those in their place.
BEFORE, AFTER = "before", "after"
# The latter in a format that can change a snapshot: needed until it has taken them.
PART = "part"

# What a dry run has built in place of a relation.
DRY_RUN = "dry_run"
# The rows that were published last, while the snapshot is ahead of the mirror.
PUBLISHED_SUFFIX = "__published"

ROWS = (NEW_ROWS, TYPED_ROWS, CHANGED, BEFORE, AFTER, PART)


class ScratchTables:
    """Tables beside a relation, dropped when the node ends, however it ends.

    If a batch is committed then, they stay: the next run finishes it with them.

    Args:
        relation: what is published
        batch_id: in their names
        is_committed: whether a batch is
    """

    def __init__(
        self,
        warehouse: Warehouse,
        relation: OpenMirroringRelation,
        batch_id: str,
        is_committed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._warehouse = warehouse
        self._relation = relation
        self._batch_id = batch_id
        self._is_committed = is_committed
        self._tables: dict[str, OpenMirroringRelation] = {}

    def table(self, kind: str) -> OpenMirroringRelation:
        """Where rows are kept until the node ends.

        Args:
            kind: what they are to the relation
        """
        return self._tables.setdefault(kind, table_beside(self._relation, kind, self._batch_id))

    def keep(
        self, kind: str, query: str, partition_by: Sequence[str] = ()
    ) -> OpenMirroringRelation:
        """Compute rows once, and keep them until the node ends.

        Args:
            partition_by: columns of the snapshot; with any, they are stored as in the snapshot
        """
        table = self.table(kind)
        if partition_by:
            sql = self._warehouse.sql("mirror_keep_partitioned", table, query, partition_by)
        else:
            sql = self._warehouse.sql("mirror_keep", table, query)
        self._warehouse.build(sql)
        self._warehouse.added(table)
        return table

    def __enter__(self) -> ScratchTables:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_committed():
            for table in self._tables.values():
                self._warehouse.drop_if_there(table)


def table_beside(
    relation: OpenMirroringRelation, kind: str, batch_id: str
) -> OpenMirroringRelation:
    """The table of a run beside that which it publishes."""
    identifier = name_beside(str(relation.identifier), kind, batch_id)
    table: OpenMirroringRelation = relation.incorporate(path={"identifier": identifier})
    return table


def leftovers(
    warehouse: Warehouse, relation: OpenMirroringRelation, kinds: Collection[str]
) -> list[OpenMirroringRelation]:
    """What earlier runs have left beside a relation."""
    return [
        found
        for found in warehouse.beside(relation)
        for kind in kinds
        if is_made_for(str(found.identifier), str(relation.identifier), kind)
    ]


def tidy_warehouse(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Let nothing that a killed process has left be in the way of a relation.

    Only where nobody else can be writing: in the embedded Spark, which one process uses.
    """
    if warehouse.embedded:
        tables = [str(found.identifier) for found in warehouse.beside(relation) if found.is_table]
        tidy(warehouse.embedded, str(relation.schema), str(relation.identifier), tables)


def check_name(relation: OpenMirroringRelation) -> None:
    """Make sure that a relation's name is not a path.

    Raises:
        CompilationError: it is
    """
    for name in (str(relation.schema), str(relation.identifier)):
        if not is_plain(name):
            raise CompilationError(
                f"{name!r} cannot be the name of a table or its schema: Spark makes a folder "
                "of it. Nothing was changed. Set another `alias` or `schema`."
            )


def name_beside(identifier: str, kind: str, batch_id: str) -> str:
    """The name of a table that a run has beside that which it publishes."""
    return f"{identifier}__{kind}_{batch_id}"


def is_made_for(name: str, identifier: str, kind: str) -> bool:
    """Whether a table was made for a run that publishes another; not by a user, whatever its name.

    Args:
        identifier: of the table that is published
    """
    pattern = re.escape(name_beside(identifier, kind, "")) + BATCH_ID
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


def is_plain(name: str) -> bool:
    """Whether a name is that of a folder, and not a path to another one."""
    return name not in ("", ".", "..") and not {"/", "\\", "\0"}.intersection(name)


def tidy(warehouse: Path, schema: str, identifier: str, tables: Collection[str]) -> None:
    """Let every folder be that of a table: Spark refuses to make a table where there is one.

    A process may be killed after a CTAS has written files, after a table was dropped, but not its
    folder, and after a table's folder was renamed, but not the table.

    Args:
        warehouse: that nobody else is using
        schema, identifier: of a table that is to be built
        tables: what the catalog has in the schema

    Raises:
        ValueError: a name is a path
    """
    if not is_plain(schema) or not is_plain(identifier):
        raise ValueError(f"{schema!r} or {identifier!r} is a path")
    schema, identifier = schema.lower(), identifier.lower()
    home = warehouse if schema == "default" else warehouse / f"{schema}.db"
    known = {name.lower() for name in tables}
    for kind in (NEXT, *ROWS):
        for folder in home.glob("*"):
            if is_made_for(folder.name, identifier, kind) and folder.name not in known:
                shutil.rmtree(folder)
    published = f"{identifier}{PUBLISHED_SUFFIX}"
    if (home / published).is_dir() and published not in known:
        if identifier in known and not (home / identifier).exists():
            (home / published).rename(home / identifier)
        else:
            shutil.rmtree(home / published)
    folder = home / identifier
    if folder.is_dir() and identifier not in known:
        renamed = [
            name
            for name in known
            if (is_made_for(name, identifier, NEXT) or name == published)
            and not (home / name).exists()
        ]
        if renamed:
            folder.rename(home / renamed[0])
        else:
            shutil.rmtree(folder)
