"""A dry run, which builds and compares a node, but publishes and replaces nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.node.advance import refuse_interrupted
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.foreign_changes import with_foreign_changes
from dbt.adapters.openmirroring.node.next_rows import NextRows, first_rows, live_rows, next_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import FULL_REFRESH
from dbt.adapters.openmirroring.node.planning import Planner, beyond_limit, returned
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.published_rows import published_rows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    DRY_RUN,
    ScratchTables,
    leftovers,
    table_beside,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation


def preview(node: Node, destination: Destination) -> tuple[OpenMirroringRelation, AdapterResponse]:
    """Build a node beside its relation, and report what would be published.

    Returns:
        the relation that was built, and the response for dbt

    Raises:
        DbtRuntimeError: if a run would fail too, or an interrupted run must be finished first
    """
    warehouse, was_incremental = node.warehouse, node.is_incremental
    # dbt builds a microbatch model batch by batch, and each batch builds on the one before
    stood_in_for = warehouse.adapter.stand_ins.real(node.target)
    target = stood_in_for or node.target
    _drop_old(warehouse, target)
    refuse_interrupted(warehouse, target)
    built = table_beside(target, DRY_RUN, new_batch_id())
    with ScratchTables(warehouse, built, new_batch_id()) as scratch:
        if node.is_view:
            view = built.incorporate(type="view")
            with warehouse.users_session():
                warehouse.execute(node.view(view))
            warehouse.added(view)
            warehouse.adapter.stand_ins.put(target, view)
            return view, AdapterResponse(_message="dry run: built beside")
        if node.is_checked_only:
            rows = live_rows(node) if warehouse.found(node.target) else first_rows(node)
        else:
            rows = next_rows(node, scratch, was_incremental)
        build(node, rows, scratch, {}, built)
        warehouse.adapter.stand_ins.put(target, built)
        if stood_in_for:
            warehouse.drop(node.target)
        verify_contract(node, built)
        if node.is_checked_only or not node.options.mirror:
            return built, AdapterResponse(_message="dry run: built beside")
        return built, _told(node, target, destination, scratch, rows, built)


def _told(
    node: Node,
    target: OpenMirroringRelation,
    destination: Destination,
    scratch: ScratchTables,
    rows: NextRows,
    built: OpenMirroringRelation,
) -> MirrorResponse:
    folder = replace(node.table_folder, identifier=str(target.identifier))
    table = PublishedTable(destination.storage(), folder, node.owner)
    table.open()
    held, last = None, table.last_build
    published = published_rows(node.warehouse, target, last, held)
    if published.is_ahead or published.build not in (None, last):
        held = table.held_record()
        published = published_rows(node.warehouse, target, last, held)
    rebuild = FULL_REFRESH if node.is_full_refresh else None
    rebuild = rebuild or returned(node, table, published, destination.zone_id)
    if not rebuild:
        published = with_foreign_changes(node, destination, table, published, scratch)
    rebuild = rebuild or (held.rebuild if held and published.is_ahead else None)
    planner = Planner(node, table, published, scratch)
    plan = planner.plan(planner.next_snapshot(built, rows, rebuild), rebuild)
    finding = beyond_limit(node, plan)
    if finding:
        raise CompilationError(f"{finding}. A run would hold these rows, and publish nothing.")
    return MirrorResponse.preview(plan)


def _drop_old(warehouse: Warehouse, target: OpenMirroringRelation) -> None:
    """Drop the leftovers of killed dry runs of a node."""
    a_day_ago = f"{datetime.now(timezone.utc) - timedelta(days=1):%Y%m%d%H%M%S}"
    for found in leftovers(warehouse, target, [DRY_RUN]):
        begun = str(found.identifier).rpartition("_")[2]
        # Another process may still use a younger table. Only one process uses the embedded Spark.
        is_old = warehouse.embedded or begun < a_day_ago
        if is_old and not warehouse.adapter.stand_ins.real(found):
            warehouse.drop_if_there(found)
