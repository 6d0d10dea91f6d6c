"""Publishing a node, with the steps of docs/contributing/how-it-works.md in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import HeldRecord, Manifest
from dbt.adapters.openmirroring.node.advance import Table, recover
from dbt.adapters.openmirroring.node.build import build, verify_contract
from dbt.adapters.openmirroring.node.decide import (
    Planner,
    beyond_limit,
    meanwhile,
    refuse_deletion,
    returned,
    too_many_deleted,
)
from dbt.adapters.openmirroring.node.hooks import REPLACED, CodeBefore, run_post_hooks
from dbt.adapters.openmirroring.node.mirrored_rows import with_foreign_changes
from dbt.adapters.openmirroring.node.next_rows import NextRows, next_rows
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.plan import FULL_REFRESH, SparkPlan
from dbt.adapters.openmirroring.node.progress import WAITING
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    ScratchTables,
    refuse_lost,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    PublishedRows,
    has_published_columns,
    note_version,
    published_rows,
    snapshot_state,
    snapshot_version,
    take_in_place,
)
from dbt.adapters.openmirroring.node.stage import stage
from dbt.adapters.openmirroring.protocol.facts import NEXT, GoAhead, Recover
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    UNMIRRORED_PROPERTY,
    ZONE_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import TableDescription
from dbt.adapters.openmirroring.text.errors import RefusedError

# why rows are held while their run may still fail
_NOT_ENDED = "because its last run has not ended"


@dataclass
class Attempt:
    """An attempt to publish a node, after the leftovers of earlier runs were handled.

    Args:
        publication: holds the lock of the table
        published: the rows that were published last
        finished: the manifest of an earlier run's batch that has just been finished, if any
        rebuild: why the table is rebuilt; None if the changes decide
    """

    node: Node
    destination: Destination
    publication: Publication
    scratch: ScratchTables
    published: PublishedRows
    finished: Manifest | None
    rebuild: str | None = None

    @property
    def planner(self) -> Planner:
        return Planner(self.node, self.publication, self.published, self.scratch, self.rebuild)

    @property
    def marks(self) -> dict[str, str]:
        """The properties by which the build of this attempt is known."""
        zone_id = self.destination.zone_id
        return {BUILD_PROPERTY: self.publication.batch_id, ZONE_PROPERTY: zone_id}

    @property
    def held(self) -> HeldRecord | None:
        """The record of the build that is the snapshot, if that is ahead of the mirror."""
        held = self.publication.held
        return held if held and held.build == self.published.marks.build else None

    @property
    def build_ahead(self) -> str | None:
        """The id of the build that is the snapshot, if that is ahead of the mirror."""
        return self.published.marks.build if self.published.is_ahead else None

    @property
    def held_rebuild(self) -> str | None:
        """Why the snapshot will be published as a rebuild, if that was known when it was built."""
        return self.held.rebuild if self.held else None

    def find_published(self) -> None:
        """Find the rows that were published last again, as Spark has them now."""
        last, held = self.publication.last_build, self.publication.held
        self.published = published_rows(self.node.warehouse, self.node.target, last, held)


@contextmanager
def begin_attempt(node: Node, destination: Destination) -> Iterator[Attempt]:
    """0. Lock the table of a node, and finish or drop what earlier runs left of it."""
    warehouse, target = node.warehouse, node.target
    with (
        destination.publication(node.table_folder, node.owner) as publication,
        ScratchTables(
            warehouse, target, publication.batch_id, lambda: publication.committed
        ) as scratch,
    ):
        finished = recover(warehouse, publication, target, node.is_full_refresh)
        if finished:
            node.print_line(
                f"Finished batch {finished.batch.id} of {target}, which an earlier run had left"
            )
        published = published_rows(warehouse, target, publication.last_build, publication.held)
        yield Attempt(node, destination, publication, scratch, published, finished)


def publish(node: Node, destination: Destination) -> MirrorResponse:
    """Build a node and publish its changes, or hold them if the configuration says so.

    Raises:
        DbtRuntimeError: if a step fails. Then nothing was published, or the next run finishes
            the batch
    """
    extends = node.is_incremental
    with begin_attempt(node, destination) as attempt:  # 0
        if attempt.finished and node.reads_itself:
            raise refuse_stale_compilation()
        attempt.rebuild = FULL_REFRESH if node.is_full_refresh else None
        if not node.options.is_held:
            destination.check_table(attempt.publication.table, node.is_full_refresh)
        _run_code_before(attempt, extends)
        rows = next_rows(node, attempt.scratch, extends, _reusable(attempt))
        if node.options.is_held:
            return _hold_rows(attempt, rows)
        if node.has_post_hooks or attempt.published.is_ahead:
            _go_ahead(attempt, rows)
            attempt.find_published()
            return _publish_snapshot(attempt)
        return _publish_rows(attempt, rows)


def rebuild(node: Node, destination: Destination) -> MirrorResponse:
    """Publish the rows that a node has in Spark as a rebuild. Nothing is built.

    Raises:
        CompilationError: if Spark has no table of the node
    """
    with begin_attempt(node, destination) as attempt:
        destination.check_table(attempt.publication.table, rebuilds=True)
        require_table(attempt)
        verify_contract(node, node.target)
        attempt.rebuild = "mirror_rebuild"
        built = attempt.planner.described(node.target)
        plan = _plan(attempt, built)
        refuse_deletion(node, plan)
        build = attempt.publication.batch_id

        def mark() -> None:
            # rows that nobody has published before, whatever build they come from
            why = "until mirror_rebuild has ended"
            attempt.publication.hold(build, why, attempt.rebuild, before=attempt.build_ahead)
            node.warehouse.mark(node.target, attempt.marks)
            if attempt.published.marks.unmirrored:
                node.warehouse.unmark(node.target, [UNMIRRORED_PROPERTY])
            node.warehouse.cache(node.target.carrying(build))

        return commit(attempt, plan, built, build, before=mark)


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
        publication, held = attempt.publication, attempt.held
        publication.check_held_record()
        if not (held or attempt.published.is_ahead):
            publication.delete_held_record()
            return MirrorResponse.of(attempt.finished.batch) if attempt.finished else None
        if tested and (held is None or held.build != tested):
            raise RefusedError(
                f"Another run has built {node.target} since its tests started, so it stays held. "
                "Run its tests again.",
                code="OM320",
            )
        require_table(attempt)
        verify_contract(node, node.target)  # somebody may have changed the rows since
        destination.check_table(publication.table, bool(held and held.rebuild))
        return _publish_snapshot(attempt, bool(tested), wait_for_turn)


def recover_node(node: Node, destination: Destination) -> None:
    """Finish what an earlier run left of a node, and do nothing else."""
    with begin_attempt(node, destination):
        pass


def keep_held(node: Node, destination: Destination, why: str) -> None:
    """Record in the landing zone why a node stays held."""
    with destination.publication(node.table_folder, node.owner) as publication:
        if not publication.pending() and (held := publication.held):
            publication.hold(held.build, why, held.rebuild, held.is_finished, held.before)


def _run_code_before(attempt: Attempt, extends: bool) -> None:
    """Check that nobody else has changed the published rows, and run the user's code."""
    node, publication, destination = attempt.node, attempt.publication, attempt.destination
    if publication.last:
        published, zone_id = attempt.published, destination.zone_id
        attempt.rebuild = attempt.rebuild or attempt.held_rebuild or meanwhile(published)
        attempt.rebuild = attempt.rebuild or returned(node, publication, published, zone_id)
    if attempt.rebuild:  # nothing is compared, so nothing has to be kept
        node.run_code_before(lambda _: True)
        return
    if node.has_own_code:
        published = attempt.published
        # this code cannot be undone if the table is refused later
        publication.verify(published.build, rebuilds=False, is_there=published.is_there)
    attempt.published = with_foreign_changes(
        node, destination, publication, attempt.published, attempt.scratch
    )
    if node.has_code_before:
        code = CodeBefore(node, publication, attempt.published, extends)
        attempt.published, attempt.rebuild = code.run()


def _reusable(attempt: Attempt) -> TableDescription | None:
    """Return the snapshot, if a build may keep rows and files of it; None to consider all rows."""
    node, published, last = attempt.node, attempt.published, attempt.publication.last
    is_held, has_hooks = node.options.is_held, node.has_post_hooks
    if published.marks.unmirrored:
        return None  # the snapshot loses the mark of `mirror: false` when it is replaced
    if published.is_ahead and (has_hooks or not is_held):
        return None  # keys may repeat in rows that no publication has checked
    if published.is_ahead:
        found = node.warehouse.found(node.target)
        return node.warehouse.describe(found) if found and found.is_table else None
    description = published.description
    if is_held or has_hooks:  # then the publication compares all rows, whatever the build keeps
        return description
    if description is None or last is None or not has_published_columns(description, last):
        return None
    return description


def _publish_rows(attempt: Attempt, rows: NextRows) -> MirrorResponse:
    """Build a node, and publish the difference from the rows that were published last."""
    node, publication = attempt.node, attempt.publication
    following, _ = build(node, rows, attempt.scratch, attempt.marks)  # 1
    verify_contract(node, following)  # 3
    built = attempt.planner.next_snapshot(following, rows)
    plan = _plan(attempt, built)  # 2 and 3
    if plan.is_void:
        return _keep_snapshot(attempt, following, plan)
    if plan.starts_folder and rows.touched:  # of all rows, only a part was computed
        query = node.warehouse.sql(
            "mirror_with_touched_rows",
            snapshot=node.target,
            replacement=following,
            touched=rows.touched,
            names=[column.quoted for column in built.columns],
        )
        return _publish_rows(attempt, NextRows(query))
    finding = beyond_limit(node, plan)
    if finding:
        _make_snapshot(attempt, following, rows, finding)
        attempt.destination.builds[node.owner.node] = publication.batch_id
        raise too_many_deleted(node, finding)
    return commit(attempt, plan, built, publication.batch_id)


def _publish_snapshot(
    attempt: Attempt, is_limited: bool = True, wait_for_turn: Callable[[], None] = lambda: None
) -> MirrorResponse:
    """Publish the rows of a snapshot that is ahead of the mirror, as they are now."""
    node, publication, build = attempt.node, attempt.publication, attempt.published.marks.build
    assert build, "a snapshot that is ahead has a build"
    attempt.rebuild = attempt.held_rebuild
    built = attempt.planner.next_snapshot(node.target, None)
    plan = _plan(attempt, built)  # 2 and 3
    finding = beyond_limit(node, plan) if is_limited else None
    if finding:
        publication.hold(build, finding, attempt.rebuild)
        raise too_many_deleted(node, finding)
    if plan.is_void:
        assert plan.journal, "a table is unchanged only since it was published"
        state = snapshot_state(node.warehouse, node.target, built.description)
        publication.keep(plan.journal, build, state)
        Table(node.warehouse, node.target, publication).advance(Recover())
        publication.delete_held_record()
        return MirrorResponse.unchanged(plan)

    def wait() -> None:
        node.warehouse.adapter.progress.show_step(WAITING)
        wait_for_turn()

    return commit(attempt, plan, built, build, before=wait)


def commit(
    attempt: Attempt,
    plan: SparkPlan,
    built: NextSnapshot,
    build: str,
    before: Callable[[], None] = lambda: None,
) -> MirrorResponse:
    """4 to 8. Stage and publish what is planned.

    Args:
        build: the id of the build whose rows are published
        before: called when all is staged, before the batch is committed
    """
    node, publication, warehouse = attempt.node, attempt.publication, attempt.node.warehouse
    files = stage(node, publication, plan, built)  # 4
    before()
    is_in_place = isinstance(built.reuse, TouchedRows)
    version = snapshot_version(warehouse, node.target) if is_in_place else None
    state = None if version else snapshot_state(warehouse, built.table, built.description)
    manifest = publication.commit(plan, files, build, version, state)  # 5
    Table(warehouse, node.target, publication, manifest).advance(Recover())  # 6 to 8
    return MirrorResponse.of(manifest.batch)


def _hold_rows(attempt: Attempt, rows: NextRows) -> MirrorResponse:
    """Build a node and make its rows the snapshot, without publishing them."""
    node, publication, why = attempt.node, attempt.publication, attempt.node.options.held_until
    unchanged = _go_ahead(attempt, rows)
    if unchanged:
        return unchanged
    if node.has_post_hooks:
        attempt.find_published()
        attempt.rebuild = attempt.held_rebuild
        attempt.planner.check(attempt.planner.described(node.target))
        publication.hold(publication.batch_id, why, attempt.rebuild)
    attempt.destination.builds[node.owner.node] = publication.batch_id
    return MirrorResponse.held(why)


def _go_ahead(attempt: Attempt, rows: NextRows) -> MirrorResponse | None:
    """Build a node, make its rows the snapshot, and run its post-hooks.

    Returns:
        the response for dbt if the snapshot stays, because it has the same rows in the same files
    """
    node, publication, published = attempt.node, attempt.publication, attempt.published
    is_held, has_hooks = node.options.is_held, node.has_post_hooks
    why = node.options.held_until if is_held else _NOT_ENDED
    if publication.last:
        attempt.rebuild = attempt.rebuild or meanwhile(published)
    attempt.rebuild = attempt.rebuild or attempt.held_rebuild
    following, _ = build(node, rows, attempt.scratch, attempt.marks)  # 1
    # Rows that cannot be published are an error of the node that builds them. With post-hooks,
    # only the rows that the hooks leave count.
    if not has_hooks:
        verify_contract(node, following)
    if has_hooks or published.is_ahead:
        built = attempt.planner.described(following)
    else:
        built = attempt.planner.next_snapshot(following, rows)
        if built.reuse.equal_rows is not None:
            plan = attempt.planner.plan(built)
            if plan.is_void:  # nothing has to be held
                _prepare_destination(attempt, plan)
                return _keep_snapshot(attempt, following, plan)
    attempt.planner.check(built, with_rows=not has_hooks)
    # until hooks have run, or a publication has ended, the rows may not be right
    _make_snapshot(attempt, following, rows, why, is_finished=is_held and not has_hooks)
    if has_hooks:
        attempt.find_published()
        is_past = attempt.published.is_past
        if run_post_hooks(node, publication.batch_id) and is_past:
            # the earlier versions may be gone, with the table that had them
            rebuild = attempt.rebuild or REPLACED
            publication.hold(publication.batch_id, why, rebuild, is_finished=False)
        verify_contract(node, node.target)
    return None


def _keep_snapshot(
    attempt: Attempt, following: OpenMirroringRelation, plan: SparkPlan
) -> MirrorResponse:
    """Drop a build that has the rows of the snapshot, which was published last."""
    attempt.node.warehouse.drop(following)
    attempt.publication.delete_held_record()
    return MirrorResponse.unchanged(plan)


def _make_snapshot(
    attempt: Attempt,
    built: OpenMirroringRelation,
    rows: NextRows,
    why: str,
    is_finished: bool = True,
) -> None:
    """Make a build the snapshot before it is published. The rows published last stay beside it.

    If the process is killed in between, the next run finishes or undoes this step (`catch_up`).

    Args:
        built: the next snapshot; or the rows that the snapshot takes in place
    """
    publication, published = attempt.publication, attempt.published
    warehouse, target = attempt.node.warehouse, attempt.node.target
    last, build_id = publication.last_build, publication.batch_id
    publication.withdraw_superseded()  # no later run can finish it either
    # Written first: if the process is killed here, the record is wrong, but the next run
    # corrects it.
    before = attempt.build_ahead
    # the snapshot has the rows of a run that has failed until it has taken those of this one
    is_failed = bool(rows.touched and before and not (attempt.held and attempt.held.is_finished))
    publication.hold(build_id, why, attempt.rebuild, is_finished and not is_failed, before)
    if rows.touched:
        if last and not published.is_ahead:
            note_version(warehouse, target, last, snapshot_version(warehouse, target), build_id)
        else:
            warehouse.mark(target, {BUILD_PROPERTY: build_id})
        take_in_place(warehouse, target, built, rows.touched)
        warehouse.replaced(target)
        if is_failed:
            publication.hold(build_id, why, attempt.rebuild, is_finished)
        return
    # it may be the only table with the rows, once the snapshot is dropped
    attempt.scratch.release(NEXT)
    keeps = last if published.build == last else None
    Table(warehouse, target).advance(GoAhead(build_id, keeps))


def _plan(attempt: Attempt, built: NextSnapshot) -> SparkPlan:
    """2 and 3. Decide what to publish, and check whether it can be published."""
    plan = attempt.planner.plan(built)
    _prepare_destination(attempt, plan)
    return plan


def _prepare_destination(attempt: Attempt, plan: SparkPlan) -> None:
    """Check the destination of a table, and write metadata that it has lost."""
    node, publication, destination = attempt.node, attempt.publication, attempt.destination
    if plan.journal is None:
        new_tables, storage = destination.new_tables, destination.storage()
        for warning in new_tables.add(storage, publication.table, plan.definition):
            node.warn(warning)
    elif plan.starts_folder:
        destination.check_table(publication.table, rebuilds=True)
    elif publication.restore_metadata(plan.journal):
        node.warn(
            f"{publication.table.metadata} was changed or lost. It has been written again as it "
            "was published."
        )


def require_table(attempt: Attempt) -> None:
    """Check that Spark has the rows of a node, and not a table that a failed run has left."""
    node = attempt.node
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
    if attempt.published.is_ahead and not (attempt.held and attempt.held.is_finished):
        raise CompilationError(
            f"The last run of {node.target} has failed or was killed, so its rows may not be "
            "right. Nothing was published. Run its node, which publishes its rows or says what "
            "is wrong with them."
        )
    refuse_lost(node.warehouse, [node.target])
