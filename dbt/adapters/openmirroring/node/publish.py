"""Publishing a node, with the steps of docs/contributing/how-it-works.md in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.advance import finish
from dbt.adapters.openmirroring.node.attempt import (
    Attempt,
    before_build,
    begin_attempt,
    reusable,
)
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.config import IMMEDIATELY
from dbt.adapters.openmirroring.node.hooks import run_post_hooks
from dbt.adapters.openmirroring.node.next_rows import NextRows, next_rows
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.plan import FULL_REFRESH, SparkPlan
from dbt.adapters.openmirroring.node.planning import (
    beyond_limit,
    meanwhile,
    refuse_deletion,
    too_many_deleted,
)
from dbt.adapters.openmirroring.node.progress import WAITING
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.held import (
    hold,
    mark_published,
    marks_of_build,
)
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot
from dbt.adapters.openmirroring.node.snapshot.state import (
    snapshot_state,
)
from dbt.adapters.openmirroring.node.snapshot.swap import snapshot_version
from dbt.adapters.openmirroring.node.snapshot.table_folders import refuse_lost
from dbt.adapters.openmirroring.node.stage import stage
from dbt.adapters.openmirroring.spark.relation import (
    BATCH_ID_PROPERTY,
    UNFINISHED_PROPERTY,
    ZONE_PROPERTY,
    OpenMirroringRelation,
)

# why rows are held while their run may still fail
_NOT_ENDED = "because its last run has not ended"


def publish(node: Node, destination: Destination) -> MirrorResponse:
    """Build a node and publish its changes, or hold them if the configuration says so.

    Raises:
        DbtRuntimeError: if a step fails. Then nothing was published, or the next run finishes
            the batch
    """
    extends = node.is_incremental
    rebuild = FULL_REFRESH if node.is_full_refresh else None
    with begin_attempt(node, destination) as attempt:
        if attempt.finished and node.reads_itself:
            raise refuse_stale_compilation()
        is_held = node.options.publish != IMMEDIATELY
        if not is_held:
            destination.check_table(attempt.publication.table, rebuild is not None)
        attempt, rebuild = before_build(attempt, extends, rebuild)
        rows = next_rows(node, attempt.scratch, extends, reusable(attempt, is_held))
        if is_held:
            return _hold_rows(attempt, rows, rebuild)
        if node.has_post_hooks or attempt.published.is_held:
            _make_snapshot(attempt, rows, rebuild, _NOT_ENDED, is_unfinished=True)
            return _publish_snapshot(attempt.with_published_rows(), is_limited=True)
        return _publish_rows(attempt, rows, rebuild)


def rebuild(node: Node, destination: Destination) -> MirrorResponse:
    """Publish the rows that a node has in Spark as a rebuild, without running its SQL.

    Raises:
        CompilationError: if Spark has no table of the node
    """
    with begin_attempt(node, destination) as attempt:
        destination.check_table(attempt.publication.table, rebuilds=True)
        require_table(node)
        rows = NextRows(f"select * from {node.target}")
        return _publish_rows(attempt, rows, "mirror_rebuild", may_hold=False)


def publish_held(
    node: Node,
    destination: Destination,
    wait_for_turn: Callable[[], None],
    tested: str | None = None,
) -> MirrorResponse | None:
    """Publish the held rows of a node.

    Args:
        wait_for_turn: returns when the tables before this one are published
        tested: the id of the build that has passed its tests. None publishes any held rows,
            including those held because of `max_deleted`

    Returns:
        the response for dbt, which is that of an earlier run's batch if there was only that to
        finish; None if nothing is held

    Raises:
        DbtRuntimeError: if a step fails. Then nothing was published, or the next run finishes
            the batch
    """
    with begin_attempt(node, destination) as attempt:
        publication, marks = attempt.publication, attempt.published.marks
        if not marks.held:
            publication.delete_held_record()
            return MirrorResponse.of(attempt.finished.batch) if attempt.finished else None
        if tested and marks.held != tested:
            raise CompilationError(
                f"Another run has built {node.target} since its tests started, so it stays held. "
                "Run its tests again."
            )
        require_table(node)
        verify_contract(node, node.target)  # somebody may have changed the rows since
        destination.check_table(publication.table, bool(marks.rebuild))
        return _publish_snapshot(attempt, bool(tested), wait_for_turn)


def recover_node(node: Node, destination: Destination) -> None:
    """Finish what an earlier run left of a node, and do nothing else."""
    with begin_attempt(node, destination):
        pass


def keep_held(node: Node, destination: Destination, why: str) -> None:
    """Record in the landing zone why a node stays held."""
    with destination.publication(node.table_folder, node.owner) as publication:
        if not publication.pending():
            publication.hold(why)


def _publish_rows(
    attempt: Attempt, rows: NextRows, rebuild: str | None, may_hold: bool = True
) -> MirrorResponse:
    node, publication, warehouse = attempt.node, attempt.publication, attempt.node.warehouse
    marks = {
        BATCH_ID_PROPERTY: publication.batch_id,
        ZONE_PROPERTY: attempt.destination.zone_id,
    }
    following, _ = build(node, rows, attempt.scratch, marks)  # 1
    verify_contract(node, following)  # 3
    built = attempt.planner.next_snapshot(following, rows, rebuild)
    plan = _plan(attempt, built, rebuild)  # 2 and 3
    if plan.is_void:
        return _keep_snapshot(attempt, following, plan)
    if plan.starts_folder and rows.touched:
        return _publish_rows(attempt, _everything(node, rows, built), rebuild, may_hold)
    finding = beyond_limit(node, plan)
    if not may_hold:
        refuse_deletion(node, plan, finding)
    if finding:
        if not rows.touched:
            following = warehouse.remark(
                following, marks, marks_of_build(publication.batch_id, rebuild)
            )
        _hold(attempt, following, rows, finding)
        attempt.destination.builds[node.owner.node] = publication.batch_id
        raise too_many_deleted(node, finding)
    files = stage(warehouse, publication, plan, node.options, built)  # 4
    version = snapshot_version(warehouse, node.target) if rows.touched else None
    state = None if version else snapshot_state(warehouse, following, built.description)
    manifest = publication.commit(plan, files, version, snapshot_state=state)  # 5
    # 6 and 7
    finish(warehouse, publication, node.target, manifest)
    return MirrorResponse.of(manifest.batch)


def _publish_snapshot(
    attempt: Attempt, is_limited: bool, wait_for_turn: Callable[[], None] = lambda: None
) -> MirrorResponse:
    """Publish the rows of a held snapshot, as they are now."""
    node, publication, warehouse = attempt.node, attempt.publication, attempt.node.warehouse
    target, marks = node.target, attempt.published.marks
    rebuild = marks.rebuild
    built = attempt.planner.next_snapshot(target, None, rebuild)
    plan = _plan(attempt, built, rebuild)  # 2 and 3
    finding = beyond_limit(node, plan) if is_limited else None
    if finding:
        _finish_hold(attempt, finding)
        raise too_many_deleted(node, finding)
    state = snapshot_state(warehouse, target, built.description)
    if plan.is_void:
        assert plan.journal, "a table is unchanged only since it was published"
        publication.keep(plan.journal, state)
        mark_published(warehouse, target, plan.journal.batch.id, plan.journal.batch.id)
        publication.delete_held_record()
        return MirrorResponse.unchanged(plan)
    files = stage(warehouse, publication, plan, node.options, built)  # 4
    warehouse.show_step(WAITING)
    wait_for_turn()
    manifest = publication.commit(plan, files, held=marks.held, snapshot_state=state)  # 5
    finish(warehouse, publication, target, manifest)  # 6 and 7
    return MirrorResponse.of(manifest.batch)


def _hold_rows(attempt: Attempt, rows: NextRows, rebuild: str | None) -> MirrorResponse:
    """Build a node and make its rows the snapshot, without publishing them."""
    node, why = attempt.node, attempt.node.options.held_until
    was_unfinished = attempt.published.marks.unfinished
    if node.has_post_hooks:
        unchanged = _make_snapshot(attempt, rows, rebuild, _NOT_ENDED, is_unfinished=True)
    else:
        unchanged = _make_snapshot(attempt, rows, rebuild, why)
    if unchanged:
        return unchanged
    if node.has_post_hooks:
        held = attempt.with_published_rows()
        built = held.planner.described(node.target)
        held.planner.check(built, held.published.marks.rebuild)
    if node.has_post_hooks or was_unfinished:
        _finish_hold(attempt, why)
    attempt.destination.builds[node.owner.node] = attempt.publication.batch_id
    return MirrorResponse.held(why)


def _finish_hold(attempt: Attempt, why: str) -> None:
    """Let a snapshot be published on request. Until now, its run could still fail."""
    attempt.node.warehouse.unmark(attempt.node.target, [UNFINISHED_PROPERTY])
    attempt.publication.hold(why)


def _make_snapshot(
    attempt: Attempt,
    rows: NextRows,
    rebuild: str | None,
    why: str,
    is_unfinished: bool = False,
) -> MirrorResponse | None:
    """Build a node, make its rows the snapshot, and run its post-hooks.

    Args:
        why: why the rows are held
        is_unfinished: whether the run may still fail after the build is the snapshot

    Returns:
        the response for dbt if the snapshot stays, because it has the same rows in the same files
    """
    node, publication, published = attempt.node, attempt.publication, attempt.published
    if publication.last:
        rebuild = rebuild or meanwhile(published)
    rebuild = rebuild or published.marks.rebuild
    marks = marks_of_build(publication.batch_id, rebuild, is_unfinished)
    marks[ZONE_PROPERTY] = attempt.destination.zone_id
    following, _ = build(node, rows, attempt.scratch, marks)
    # Rows that cannot be published are an error of the node that builds them. With post-hooks,
    # only the rows that the hooks leave count.
    if not node.has_post_hooks:
        verify_contract(node, following)
    if node.has_post_hooks or published.is_held:
        built = attempt.planner.described(following)
    else:
        built = attempt.planner.next_snapshot(following, rows, rebuild)
        if built.reuse.equal_rows is not None:
            plan = attempt.planner.plan(built, rebuild)
            if plan.is_void:  # nothing has to be held
                _prepare_destination(attempt, plan)
                return _keep_snapshot(attempt, following, plan)
    attempt.planner.check(built, rebuild, with_rows=not node.has_post_hooks)
    _hold(attempt, following, rows, why, is_unfinished)
    if node.has_post_hooks:
        held = attempt.with_published_rows().published
        run_post_hooks(node, held, replace(held.marks, held=publication.batch_id))
        verify_contract(node, node.target)
    return None


def _keep_snapshot(
    attempt: Attempt, following: OpenMirroringRelation, plan: SparkPlan
) -> MirrorResponse:
    """Drop a build that has the rows of the snapshot, which was published last."""
    attempt.node.warehouse.drop(following)
    attempt.publication.delete_held_record()
    return MirrorResponse.unchanged(plan)


def _hold(
    attempt: Attempt,
    built: OpenMirroringRelation,
    rows: NextRows,
    why: str,
    is_unfinished: bool = False,
) -> None:
    publication = attempt.publication
    # Written first: if the process is killed here, the record is wrong, but the next run
    # corrects it.
    publication.hold(why)
    if not rows.touched:
        # it may be the only table with the rows, once the snapshot is dropped
        attempt.scratch.release(built)
    hold(
        attempt.node.warehouse,
        attempt.node.target,
        built,
        rows,
        attempt.published,
        publication.last_batch_id,
        publication.batch_id,
        is_unfinished,
    )


def _plan(attempt: Attempt, built: NextSnapshot, rebuild: str | None) -> SparkPlan:
    """2 and 3. Decide what to publish, and check whether it can be published."""
    plan = attempt.planner.plan(built, rebuild)
    _prepare_destination(attempt, plan)
    return plan


def _prepare_destination(attempt: Attempt, plan: SparkPlan) -> None:
    """Check the destination of a table, and write metadata that it has lost."""
    node, publication = attempt.node, attempt.publication
    if plan.journal is None:
        zone = attempt.destination
        for warning in zone.new_tables.add(zone.storage(), publication.table, plan.definition):
            node.warn(warning)
    elif plan.starts_folder:
        attempt.destination.check_table(publication.table, rebuilds=True)
    elif publication.restore_metadata(plan.journal):
        node.warn(
            f"{publication.table.metadata} was changed or lost. It has been written again as it "
            "was published."
        )


def require_table(node: Node) -> None:
    """Check that Spark has the rows of a node.

    Raises:
        CompilationError: if it has no table, or one that was only made to check SQL, or one that a
            failed run has left
    """
    snapshot = node.warehouse.found(node.target)
    if snapshot is None or not snapshot.is_table:
        raise CompilationError(
            f"Spark has no table {node.target}, so there is nothing to publish. Run its node."
        )
    if snapshot.is_checked:
        raise CompilationError(
            f"{node.target} does not have the rows of its node: `--empty` or `--sample` has made "
            "it to check SQL. Nothing was published. Run its node."
        )
    if node.warehouse.marks(snapshot).unfinished:
        raise CompilationError(
            f"The last run of {node.target} has failed or was killed, so its rows may not be "
            "right. Nothing was published. Run its node, which publishes its rows or says what "
            "is wrong with them."
        )
    refuse_lost(node.warehouse, [node.target])


def _everything(node: Node, rows: NextRows, part: NextSnapshot) -> NextRows:
    """Return all rows of a next snapshot of which only a part was computed."""
    names = [column.quoted for column in part.columns]
    query = node.warehouse.sql(
        "mirror_with_touched_rows",
        snapshot=node.target,
        replacement=part.table,
        touched=rows.touched,
        names=names,
    )
    return NextRows(query)
