"""A materialization: publish a node, only build it, only check its SQL, or preview a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.landing_zone.inventory import held_rows, last_published
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.node.advance import Table
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.decide import beyond_limit, compare, next_snapshot
from dbt.adapters.openmirroring.node.next_rows import first_rows, live_rows, next_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.publish import publish
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    DRY_RUN,
    ScratchTables,
    check_name,
    leftovers,
    make_way,
    refuse_lost,
    table_beside,
    tidy,
)
from dbt.adapters.openmirroring.node.start import Attempt, intent_of
from dbt.adapters.openmirroring.node.user_code import may_change
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.protocol.facts import (
    UNMIRRORED,
    BuildOnly,
    GoAhead,
    LookOnly,
    Preview,
)
from dbt.adapters.openmirroring.spark.relation import (
    CHECKED_PROPERTY,
    UNMIRRORED_PROPERTY,
    OpenMirroringRelation,
)


def materialize(node: Node, destination: Destination) -> OpenMirroringRelation:
    """Build a table-like node, publish it, and document it. A dry run only builds it.

    Raises:
        DbtRuntimeError: if a step fails; the message says what was changed
    """
    file_format = str(node.config.get("file_format"))
    is_embedded = node.warehouse.embedded is not None
    check_name(str(node.target.schema), str(node.target.identifier), file_format, is_embedded)
    with node.warehouse.adapter.connections.own_session():
        refuse_lost(node.warehouse, node.sources)
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
    tidy(node.warehouse, node.target)
    if node.options.mirror:
        Table(node.warehouse, node.target).advance(LookOnly())
    else:
        _catch_up(node, destination)
    if node.extends:
        refuse_lost(node.warehouse, [node.target])
    node.run_code_before(allows)
    response = _check_only(node) if node.options.mirror else _build_only(node, was_incremental)
    node.run_post_hooks(allows)
    return response


def _catch_up(node: Node, destination: Destination) -> None:
    """Let the table of a `mirror: false` node catch up with what earlier runs have left."""
    warehouse, target = node.warehouse, node.target
    journal = held = None
    if Table(warehouse, target).is_interrupted:
        place = destination.storage(), str(target.schema), str(target.identifier)
        journal, held = (last_published(*place) or (None, None))[1], held_rows(*place)
    Table(warehouse, target, journal=journal, held=held).advance(BuildOnly())


def _build_only(node: Node, was_incremental: bool) -> AdapterResponse:
    """Build a `mirror: false` node, whose table is marked for when it is mirrored again."""
    warehouse, target, build_id = node.warehouse, node.target, new_batch_id()
    with ScratchTables(warehouse, target, build_id) as scratch:
        rows = next_rows(node, scratch, was_incremental, warehouse.description(target))
        marks, beside = {UNMIRRORED_PROPERTY: "true"}, scratch.table(UNMIRRORED)
        following, response = build(node, rows, scratch, marks, beside)
        verify_contract(node, following)
        taking = (following, rows.touched) if rows.touched else None
        ahead = GoAhead(build_id, in_place=taking is not None)
        Table(warehouse, target, taking=taking).advance(ahead)
    return response


def _check_only(node: Node) -> AdapterResponse:
    """Run the SQL of a node, for `--empty` and `--sample`."""
    warehouse, target = node.warehouse, node.target
    with ScratchTables(warehouse, target, new_batch_id()) as scratch:
        rows = live_rows(node) if warehouse.found(target) else first_rows(node)
        following, _ = build(node, rows, scratch, {})
        if not warehouse.found(target):  # the models downstream are to be checked too
            # Parquet, because dbt's list shows the properties of its tables
            marks = {CHECKED_PROPERTY: "true"}
            query = f"select * from {following}"
            make_way(warehouse, target)
            warehouse.run("mirror_keep", table=target, query=query, properties=marks)
            warehouse.adapter.cache_added(target)
    return AdapterResponse(_message="SQL checked, nothing published")


def preview(node: Node, destination: Destination) -> tuple[OpenMirroringRelation, AdapterResponse]:
    """Build a node beside its relation, and report what would be published.

    Raises:
        DbtRuntimeError: if a run would fail too, or an interrupted run must be finished first
    """
    warehouse, was_incremental = node.warehouse, node.is_incremental
    # dbt builds a microbatch model batch by batch, and each batch builds on the one before
    stood_in_for = warehouse.adapter.stand_ins.real(node.target)
    target = stood_in_for or node.target
    _drop_old_previews(warehouse, target)
    Table(warehouse, target).advance(LookOnly())
    built = table_beside(target, DRY_RUN, new_batch_id())
    with ScratchTables(warehouse, built, new_batch_id()) as scratch:
        if node.is_view:
            view = built.incorporate(type="view")
            with warehouse.users_session():
                warehouse.execute(node.view(view))
            warehouse.adapter.cache_added(view)
            warehouse.adapter.stand_ins.put(target, view)
            return view, AdapterResponse(_message="dry run: built beside")
        attempt = None
        if node.options.mirror and not node.is_checked_only:
            attempt = _attempt(node, target, destination, scratch)
        elif node.extends:
            refuse_lost(warehouse, [target])
        if node.is_checked_only:
            rows = live_rows(node) if warehouse.found(node.target) else first_rows(node)
        else:
            rows = next_rows(node, scratch, was_incremental)
        build(node, rows, scratch, {}, built)
        warehouse.adapter.stand_ins.put(target, built)
        if stood_in_for:
            warehouse.drop(node.target)
        verify_contract(node, built)
        if attempt is None:
            return built, AdapterResponse(_message="dry run: built beside")
        planned = compare(attempt, next_snapshot(attempt, built, rows))
        finding = beyond_limit(node, planned)
        if finding:
            raise CompilationError(f"{finding}. A run would hold these rows, and publish nothing.")
        return built, MirrorResponse.preview(planned)


def _attempt(
    node: Node, target: OpenMirroringRelation, destination: Destination, scratch: ScratchTables
) -> Attempt:
    """Start an attempt that only reads, or refuse it as a run would be."""
    folder = replace(node.table_folder, identifier=str(target.identifier))
    table = PublishedTable(destination.storage(), folder, node.owner)
    manifest = table.pending()
    attempt = Attempt(node, destination, table, scratch, target)
    attempt.manifest = manifest
    if attempt.look().is_ahead or attempt.build not in (None, table.last_build):
        attempt.held = table.read_held()
        attempt.look()
    attempt.start(intent_of(node, Preview))
    return attempt


def _drop_old_previews(warehouse: Warehouse, target: OpenMirroringRelation) -> None:
    """Drop the leftovers of killed dry runs of a node."""
    a_day_ago = f"{datetime.now(timezone.utc) - timedelta(days=1):%Y%m%d%H%M%S}"
    for found in leftovers(warehouse, target, [DRY_RUN]):
        begun = str(found.identifier).rpartition("_")[2]
        # Another process may still use a younger table. Only one process uses the embedded Spark.
        is_old = warehouse.embedded or begun < a_day_ago
        if is_old and not warehouse.adapter.stand_ins.real(found):
            warehouse.drop_if_there(found)
