"""A publication: the steps of docs/how-it-works.md, in their order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import Owner, TableDefinition
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.node.advance import finish, recover, snapshot_version
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.columns import landing_columns
from dbt.adapters.openmirroring.node.compare import Comparer
from dbt.adapters.openmirroring.node.decide import decide
from dbt.adapters.openmirroring.node.definition import table_definition
from dbt.adapters.openmirroring.node.next_rows import NextRows, next_rows
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.reuse import FileRange, NextSnapshot, Reuse
from dbt.adapters.openmirroring.node.same_files import same_files
from dbt.adapters.openmirroring.node.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.stage import stage
from dbt.adapters.openmirroring.spark.table import TableDescription


class Destination(Protocol):
    """Where a node is published to."""

    def publication(self, table: TableFolder, owner: Owner) -> AbstractContextManager[Publication]:
        """Hold a table while it is published."""

    def check_table(self, table: TableFolder, rebuilds: bool) -> None:
        """Make sure that Fabric will apply what is published to a table."""

    def add_table(self, table: TableFolder, definition: TableDefinition) -> list[str]:
        """Count a table that is published for the first time; returns warnings for the user."""


def publish(node: Node, destination: Destination) -> MirrorResponse:
    """Build a node, and publish what has changed.

    Raises:
        DbtRuntimeError: nothing was published, or the next run finishes what was begun
    """
    was_incremental = node.is_incremental
    rebuild = "--full-refresh" if node.is_full_refresh else ""

    def rows(scratch: ScratchTables) -> NextRows:
        return next_rows(node, scratch, was_incremental)

    return _publish(node, destination, rows, rebuild, is_compiled=True)


def rebuild(node: Node, destination: Destination) -> MirrorResponse:
    """Publish the rows that a node has in Spark as a rebuild; nothing is computed.

    Raises:
        CompilationError: Spark has no table of the node
    """

    def rows(_: ScratchTables) -> NextRows:
        snapshot = node.warehouse.found(node.target)
        if snapshot is None or not snapshot.is_table:
            raise CompilationError(
                f"Spark has no table {node.target}, so there is nothing to publish. Run its node."
            )
        return NextRows(f"select * from {node.target}")

    return _publish(node, destination, rows, "mirror_rebuild", is_compiled=False)


def _publish(
    node: Node,
    destination: Destination,
    rows: Callable[[ScratchTables], NextRows],
    rebuild: str,
    is_compiled: bool,
) -> MirrorResponse:
    with (
        destination.publication(node.table_folder, node.owner) as publication,
        ScratchTables(
            node.warehouse, node.target, publication.batch_id, lambda: publication.committed
        ) as scratch,
    ):
        finished = recover(node.warehouse, publication, node.target)  # 0
        if finished:
            node.tell(
                f"Finished batch {finished.batch.id} of {node.target}, which an earlier run had "
                "left"
            )
            if is_compiled and node.reads_itself:
                raise refuse_stale_compilation()
        destination.check_table(publication.table, bool(rebuild))
        return _publish_rows(node, destination, publication, scratch, rows(scratch), rebuild)


def _publish_rows(
    node: Node,
    destination: Destination,
    publication: Publication,
    scratch: ScratchTables,
    rows: NextRows,
    rebuild: str,
) -> MirrorResponse:
    warehouse, target, options = node.warehouse, node.target, node.options
    following, _ = build(node, rows, scratch, publication.batch_id)  # 1
    verify_contract(node, following)  # 3
    description = warehouse.describe(following)
    stored = None if rows.in_place else _stored(node)
    reuse = rows.reuse or _same_files(node, stored, description, rebuild) or Reuse()
    columns = landing_columns(description.columns)
    built = NextSnapshot(following, description, columns, reuse)
    definition = table_definition(columns, options)
    comparer = Comparer(warehouse, scratch, publication, options, definition, target, built)
    moved = _moved(stored, description)
    plan = _plan(node, destination, publication, comparer, rebuild, moved)  # 2 and 3
    if plan.is_void:
        warehouse.drop(following)
        return MirrorResponse.unchanged(plan)
    if plan.starts_folder and rows.in_place:
        everything = _everything(node, rows, built)
        return _publish_rows(node, destination, publication, scratch, everything, rebuild)
    files = stage(warehouse, publication, plan, options, built)  # 4
    version = snapshot_version(warehouse, target) if rows.in_place else None
    manifest = publication.commit(plan, files, version)  # 5
    finish(warehouse, publication, target, manifest, bool(options.partition_by))  # 6 and 7
    return MirrorResponse.of(manifest.batch)


def _plan(
    node: Node,
    destination: Destination,
    publication: Publication,
    comparer: Comparer,
    rebuild: str,
    moved: str,
) -> Plan:
    """2 and 3. Decide what to publish, after making sure that it can be."""
    warehouse, definition = node.warehouse, comparer.definition
    snapshot = warehouse.found(node.target)
    was_view = snapshot is not None and snapshot.is_view
    published = warehouse.batch_id(snapshot)
    journal = publication.verify(published, bool(rebuild) or was_view)
    if journal is None:
        for warning in destination.add_table(publication.table, definition):
            node.warn(warning)
    elif was_view and not rebuild:
        rebuild = "was a view meanwhile"
    elif not rebuild and publication.restore_metadata(journal):
        node.warn(
            f"{publication.table.metadata} was changed or lost. It has been written again as it "
            "was published."
        )
    return decide(
        journal,
        definition,
        node.options,
        comparer,
        lambda change: str(warehouse.ask(f"mirror_on_{change.kind}", change)),
        rebuild=rebuild,
        moved=moved,
        initial="the table folder was gone" if published else "",
    )


def _stored(node: Node) -> TableDescription | None:
    """The snapshot as Spark has it; None without one."""
    snapshot = node.warehouse.found(node.target)
    return node.warehouse.describe(snapshot) if snapshot and snapshot.is_table else None


def _same_files(
    node: Node, before: TableDescription | None, after: TableDescription, rebuild: str
) -> Reuse | None:
    if before is None or rebuild or not node.warehouse.is_local:
        return None
    return same_files(before, after)


def _moved(before: TableDescription | None, after: TableDescription) -> str:
    """How the next snapshot is stored in another way than the snapshot; empty if it is not."""
    if before is None or before.layout == after.layout:
        return ""
    return f"stored as {after.layout} in Spark, before as {before.layout}"


def _everything(node: Node, rows: NextRows, part: NextSnapshot) -> NextRows:
    """All rows of a next snapshot of which only a part was computed."""
    names = [column.quoted for column in part.columns]
    query = node.warehouse.sql(
        "mirror_with_touched_rows", FileRange(node.target), part.table, rows.touched, names
    )
    return NextRows(query)
