"""The body of a materialization, between its hooks."""

from __future__ import annotations

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.landing_zone.inventory import last_published
from dbt.adapters.openmirroring.node.advance import (
    catch_up,
    is_interrupted,
    refuse_interrupted,
)
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.next_rows import first_rows, live_rows, next_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.preview import preview
from dbt.adapters.openmirroring.node.publish import publish
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEXT,
    ROLES_OF_ROWS,
    ScratchTables,
    check_name,
    leftovers,
)
from dbt.adapters.openmirroring.node.snapshot.swap import swap, take_in_place
from dbt.adapters.openmirroring.node.snapshot.table_folders import make_way, refuse_lost, tidy
from dbt.adapters.openmirroring.node.user_code import may_change
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    CHECKED_PROPERTY,
    UNMIRRORED_PROPERTY,
    VERSION_PROPERTY,
    OpenMirroringRelation,
)

_UNMIRRORED = {UNMIRRORED_PROPERTY: "true"}
_PUBLICATION = (BUILD_PROPERTY, VERSION_PROPERTY)


def materialize(node: Node, destination: Destination) -> OpenMirroringRelation:
    """Build a table-like node, publish it, and document it. A dry run only builds it.

    Returns:
        the relation that was built

    Raises:
        DbtRuntimeError: if a step fails; the message says what was changed
    """
    file_format = str(node.config.get("file_format"))
    is_embedded = node.warehouse.embedded is not None
    check_name(str(node.target.schema), str(node.target.identifier), file_format, is_embedded)
    with node.warehouse.own_session():
        refuse_lost(node.warehouse, node.tables_to_read)
        if destination.dry_run:
            # a dry run could not undo changes of the relation
            node.run_own_code(lambda statement: not may_change(statement, node.target))
            built, response = preview(node, destination)
            node.stored(response)
            return built
        checked = node.warehouse.adapter.checked.pop(node.target.place, None)
        if checked:  # the relation that `--empty` or `--sample` has made
            node.warehouse.drop(checked)
        response = _materialize(node, destination)
        node.stored(response)
        node.document()
    return node.target


def _materialize(node: Node, destination: Destination) -> AdapterResponse:
    if node.options.mirror and not node.is_checked_only:
        return publish(node, destination)

    def allows(statement: str) -> bool:
        return node.options.mirror is False or not may_change(statement, node.target)

    was_incremental = node.is_incremental
    node.run_code_before(allows)
    built = (
        _check_only(node)
        if node.options.mirror
        else _build_only(node, destination, was_incremental)
    )
    node.run_post_hooks(allows)
    return built


def _build_only(node: Node, destination: Destination, was_incremental: bool) -> AdapterResponse:
    """Build a `mirror: false` node as dbt-spark does, but keep the old table until the swap.

    The table is marked, so that the node knows it when it is mirrored again.
    """
    warehouse, target = node.warehouse, node.target
    tidy(warehouse, target)
    if is_interrupted(warehouse, target):
        schema, identifier = str(target.schema), str(target.identifier)
        _, last = last_published(destination.storage(), schema, identifier)
        if last:
            catch_up(warehouse, target, last.batch.build, None)
    for leftover in leftovers(warehouse, target, ROLES_OF_ROWS):
        warehouse.drop(leftover)
    for leftover in leftovers(warehouse, target, [NEXT]):
        if warehouse.found(target):
            warehouse.drop(leftover)
        else:
            swap(warehouse, target, leftover)
    with ScratchTables(warehouse, target, new_batch_id()) as scratch:
        found = warehouse.found(target)
        snapshot = warehouse.describe(found) if found and found.is_table else None
        rows = next_rows(node, scratch, was_incremental, snapshot)
        following, response = build(node, rows, scratch, _UNMIRRORED)
        verify_contract(node, following)
        if rows.touched:
            # marked before it has other rows than those that were published
            warehouse.mark(target, _UNMIRRORED)
            warehouse.unmark(target, _PUBLICATION)
            take_in_place(warehouse, target, following, rows.touched.new_rows, rows.touched.keys)
            warehouse.replaced(target)
        else:
            swap(warehouse, target, following)
    return response


def _check_only(node: Node) -> AdapterResponse:
    """Run the SQL of a node, for `--empty` and `--sample`.

    The result stays only if the node had no relation yet, so that models downstream can be
    checked too.
    """
    warehouse, target = node.warehouse, node.target
    refuse_interrupted(warehouse, target)
    tidy(warehouse, target)
    with ScratchTables(warehouse, target, new_batch_id()) as scratch:
        rows = live_rows(node) if warehouse.found(target) else first_rows(node)
        following, _ = build(node, rows, scratch, {})
        if not warehouse.found(target):
            # Parquet, because dbt's list shows the properties of its tables
            marks = {CHECKED_PROPERTY: "true"}
            query = f"select * from {following}"
            make_way(warehouse, target)
            warehouse.run("mirror_keep", table=target, query=query, properties=marks)
            warehouse.added(target)
    return AdapterResponse(_message="SQL checked, nothing published")
